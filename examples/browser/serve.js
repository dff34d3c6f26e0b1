// Serves this folder, and the descriptors of the API, on the loopback. Usage: node serve.js [PORT]     default 8080; 0 = a free one
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const here = new URL(".", import.meta.url);
const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".bin": "application/octet-stream" };

/** The file of a path; nothing outside of what the page is made of. */
function file(path) {
  if (path === "/") return new URL("index.html", here);
  if (path === "/descriptors.bin") return new URL("../../build/descriptors.bin", here);
  return /^\/([a-z]+|node_modules\/.+)\.js$/.test(path) && normalize(path) === path ? new URL(`.${path}`, here) : undefined;
}

const server = createServer(async (request, response) => {
  const url = file(new URL(request.url, "http://localhost").pathname);
  const content = url && (await readFile(url).catch(() => undefined));
  if (!content) {
    response.writeHead(404).end("There is nothing at this path.\n");
    return;
  }
  response.writeHead(200, { "content-type": types[extname(fileURLToPath(url))] }).end(content);
});

server.on("error", ({ message }) => {
  console.error(`serve.js: ${message}. Another port can be named: node serve.js PORT`);
  process.exit(1);
});
server.listen(Number(process.argv[2] ?? 8080), "127.0.0.1", () => {
  console.log(`the topic viewer is on http://127.0.0.1:${server.address().port}`);
});
