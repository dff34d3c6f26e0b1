// Prints the contracts of Wallets.sol as JSON: name → creation code and the selector of each function, in hexadecimal.
import { readFileSync } from "node:fs";
import solc from "solc";

const file = "Wallets.sol";
const input = {
  language: "Solidity",
  sources: { [file]: { content: readFileSync(new URL(file, import.meta.url), "utf8") } },
  settings: {
    optimizer: { enabled: true },
    outputSelection: { "*": { "*": ["evm.bytecode.object", "evm.methodIdentifiers"] } },
  },
};
const output = JSON.parse(solc.compile(JSON.stringify(input)));
if (output.errors?.length) {
  console.error(output.errors.map((error) => error.formattedMessage).join("\n"));
  process.exit(1);
}
const contracts = Object.entries(output.contracts[file]).map(([name, { evm }]) => [
  name,
  { code: evm.bytecode.object, selectors: evm.methodIdentifiers },
]);
console.log(JSON.stringify(Object.fromEntries(contracts)));
