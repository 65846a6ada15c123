/**
 * Google's well-known types. Their JSON has rules of its own, which rely on their fields, so ours are used in place of whatever a set
 * calls by these names; and a set that imports them without holding them is complete all the same.
 */
import { clone } from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  file_google_protobuf_any,
  file_google_protobuf_api,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_source_context,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_type,
  file_google_protobuf_wrappers,
} from "@bufbuild/protobuf/wkt";
import { unusable } from "./unusable.ts";

const folder = "google/protobuf/";

const files: ReadonlyMap<string, FileDescriptorProto> = new Map(
  [
    file_google_protobuf_any,
    file_google_protobuf_api,
    file_google_protobuf_descriptor,
    file_google_protobuf_duration,
    file_google_protobuf_empty,
    file_google_protobuf_field_mask,
    file_google_protobuf_source_context,
    file_google_protobuf_struct,
    file_google_protobuf_timestamp,
    file_google_protobuf_type,
    file_google_protobuf_wrappers,
  ].map(({ proto }) => [proto.name, proto]),
);

const typeNames = new Set([...files.values()].flatMap((file) => file.messageType.map(({ name }) => name)));

export function wellKnownFile(name: string): FileDescriptorProto | undefined {
  return files.get(name);
}

/**
 * The file itself, or ours in its place: also where a build has put it into another folder.
 * @throws Failure invalid_request when a file of another name declares one of these types.
 */
export function withOwnWellKnown(file: FileDescriptorProto): FileDescriptorProto {
  if (file.package !== "google.protobuf") return file;
  const own = files.get(`${folder}${file.name.slice(file.name.lastIndexOf("/") + 1)}`);
  if (own === undefined) {
    const taken = file.messageType.find(({ name }) => typeNames.has(name));
    if (taken === undefined) return file;
    throw unusable(`file "${file.name}" declares "google.protobuf.${taken.name}", which is a well-known type`);
  }
  if (own.name === file.name) return own;
  const renamed = clone(FileDescriptorProtoSchema, own);
  renamed.name = file.name;
  // The imports of the copy go to ours, which are there whether or not the set has them.
  return renamed;
}
