/** What is taken for an icon, and for which kind: only the bytes count. */
import { describe, expect, it } from "vitest";
import { pngIcon } from "../../src/dev-registry/offers/png-icon.ts";
import { iconBytesMax } from "../../src/limits.ts";
import { iconMediaType } from "../../src/operations/icon-type.ts";

const webp = Buffer.concat([Buffer.from("RIFF"), Buffer.from([0x1a, 0, 0, 0]), Buffer.from("WEBPVP8L")]);

describe("an icon is known by its bytes", () => {
  it.each([
    ["a PNG", pngIcon("pets"), "image/png"],
    ["no more than the signature of a PNG", pngIcon("pets").subarray(0, 8), "image/png"],
    ["a WebP", webp, "image/webp"],
    ["an SVG", "<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"],
    ["an SVG without attributes", "<svg></svg>", "image/svg+xml"],
    ["an empty SVG", "<svg/>", "image/svg+xml"],
    ["an SVG whose attributes start on the next line", "<svg\n  width='1'/>", "image/svg+xml"],
    ["an SVG behind a byte order mark", "\uFEFF<svg/>", "image/svg+xml"],
    ["an SVG behind a declaration", '<?xml version="1.0" encoding="UTF-8"?>\r\n<svg/>', "image/svg+xml"],
    ["an SVG behind comments", "<!-- a > b --> <!--<html>-->\n<svg/>", "image/svg+xml"],
    [
      "an SVG behind everything XML allows",
      `<?xml version="1.0"?>\n<?style [x]?><!-- [ --><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/svg11.dtd">\n<svg/>`,
      "image/svg+xml",
    ],
  ])("%s", (_title, content, type) => {
    expect(iconMediaType(Buffer.from(content))).toBe(type);
  });

  it.each<[string, string | Uint8Array]>([
    ["nothing", ""],
    ["blanks", " \n"],
    ["text", "svg"],
    ["HTML", "<!DOCTYPE html><html><svg/></html>"],
    ["HTML that starts as an SVG would", "<html><svg/></html>"],
    ["another element with such a name", "<svgx/>"],
    ["an SVG in capitals", "<SVG/>"],
    ["an SVG behind text", "x<svg/>"],
    ["an SVG whose document type declares entities", '<!DOCTYPE svg [<!ENTITY a "aaaa">]><svg>&a;</svg>'],
    ["an SVG in a comment", "<!-- <svg/> -->"],
    ["a comment without an end", "<!-- <svg/>"],
    ["a declaration without an end", "<?xml <svg/>"],
    ["a document type without an end", "<!DOCTYPE svg "],
    ["an SVG that is no UTF-8", Buffer.concat([Buffer.from("<svg>"), Buffer.from([0xff]), Buffer.from("</svg>")])],
    ["an SVG in UTF-16", Buffer.from("\uFEFF<svg/>", "utf16le")],
    ["most of the signature of a PNG", pngIcon("pets").subarray(0, 7)],
    ["a PNG that was sent as text", Buffer.from(pngIcon("pets").toString("latin1"), "utf8")],
    ["a PNG behind a blank", Buffer.concat([Buffer.from(" "), pngIcon("pets")])],
    ["another RIFF file", Buffer.from("RIFF\u001a\u0000\u0000\u0000WAVEfmt ")],
    ["the name of WebP without RIFF", Buffer.from("XXXX\u001a\u0000\u0000\u0000WEBPVP8L")],
    ["a RIFF file cut short", webp.subarray(0, 11)],
    ["a GIF", "GIF89a"],
    ["a JPEG", Buffer.from([0xff, 0xd8, 0xff, 0xe0])],
    ["an icon file of Windows", Buffer.from([0, 0, 1, 0])],
    ["a PDF", "%PDF-1.7"],
    ["JSON", "{}"],
  ])("%s is no icon", (_title, content) => {
    expect(iconMediaType(Buffer.from(content))).toBeUndefined();
  });

  it("the largest file full of comments, ended or not, is judged at once", { timeout: 5_000 }, () => {
    for (const piece of ["<!---->", "<!--", "<??>", "<!DOCTYPE svg>", " "]) {
      expect(iconMediaType(Buffer.from(piece.repeat(iconBytesMax / piece.length)))).toBeUndefined();
    }
  });
});
