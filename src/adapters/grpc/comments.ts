/** Comments of proto files, which a descriptor set may carry as "source info". Runs in the descriptor worker. */
import { create } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  type FileDescriptorProto,
  SourceCodeInfo_LocationSchema,
} from "@bufbuild/protobuf/wkt";

/** Text above or behind a declaration, by its descriptor. */
export type Comments = ReadonlyMap<object, string>;

/** Field numbers in descriptor.proto: a location's path is made of them and of indexes. */
const inFile = { message: 4, enum: 5, service: 6 };
const inMessage = { field: 2, nested: 3, enum: 4 };
const inEnum = { value: 2 };
const inService = { method: 2 };

export function readComments(files: Iterable<FileDescriptorProto>): Comments {
  const comments = new Map<object, string>();
  for (const file of files) readFile(file, comments);
  return comments;
}

/** Without positions and without whatever has no comment: all that `readComments` looks at, in a fraction of the size. */
export function keepOnlyComments(file: FileDescriptorProto): void {
  const info = file.sourceCodeInfo;
  if (info === undefined) return;
  info.location = info.location
    .filter((location) => location.leadingComments !== "" || location.trailingComments !== "")
    .map(({ path, leadingComments, trailingComments }) =>
      create(SourceCodeInfo_LocationSchema, {
        path,
        ...(leadingComments === "" ? {} : { leadingComments }),
        ...(trailingComments === "" ? {} : { trailingComments }),
      }),
    );
}

function readFile(file: FileDescriptorProto, comments: Map<object, string>): void {
  const texts = new Map<string, string>();
  for (const { path, leadingComments, trailingComments } of file.sourceCodeInfo?.location ?? []) {
    const text = plain(leadingComments) || plain(trailingComments);
    if (text !== "") texts.set(path.join("."), text);
  }
  if (texts.size === 0) return;
  const note = (declared: object, path: string) => {
    const text = texts.get(path);
    if (text !== undefined) comments.set(declared, text);
  };
  const noteEnum = (declared: EnumDescriptorProto, path: string) => {
    note(declared, path);
    for (const [at, value] of declared.value.entries()) note(value, `${path}.${inEnum.value}.${at}`);
  };
  const noteMessage = (declared: DescriptorProto, path: string) => {
    note(declared, path);
    for (const [at, field] of declared.field.entries()) note(field, `${path}.${inMessage.field}.${at}`);
    for (const [at, nested] of declared.nestedType.entries()) noteMessage(nested, `${path}.${inMessage.nested}.${at}`);
    for (const [at, nested] of declared.enumType.entries()) noteEnum(nested, `${path}.${inMessage.enum}.${at}`);
  };
  for (const [at, message] of file.messageType.entries()) noteMessage(message, `${inFile.message}.${at}`);
  for (const [at, declared] of file.enumType.entries()) noteEnum(declared, `${inFile.enum}.${at}`);
  for (const [at, service] of file.service.entries()) {
    const path = `${inFile.service}.${at}`;
    note(service, path);
    for (const [index, method] of service.method.entries()) note(method, `${path}.${inService.method}.${index}`);
  }
}

/** As written behind `//`: one space less in each line. */
function plain(comment: string): string {
  return comment.replaceAll(/^ /gm, "").trim().toWellFormed();
}
