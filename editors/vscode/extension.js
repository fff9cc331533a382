// Starts `genrw lsp` and lets it answer for .gen and .rw files.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function activate() {
  const settings = workspace.getConfiguration("genrw");
  const folders = settings.get("rules", []).flatMap((folder) => ["--rules", folder]);
  const server = { command: settings.get("command", "genrw"), args: ["lsp", ...folders] };
  const documentSelector = [{ language: "genrw" }, { language: "genrw-rules" }];
  client = new LanguageClient("genrw", "genrw", server, { documentSelector });
  return client.start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
