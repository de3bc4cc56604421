// Compiles contracts and puts them on a chain. Begins a script of tests: `given` holds what the test says, `url` among it.
const fs = require('fs');
const { JsonRpcProvider } = require('ethers');
const provider = new JsonRpcProvider(given.url);
const signer = await provider.getSigner(0);

// Creates a contract, and if `address` says where it is on other chains, puts the code there. Answers with its address.
const place = async (code, address) => {
    const sent = await signer.sendTransaction({ data: code.startsWith('0x') ? code : '0x' + code });
    const at = (await sent.wait()).contractAddress;
    if (!address) return at;
    await provider.send('anvil_setCode', [address, await provider.getCode(at)]);
    return address;
};

// The creation code of a contract in a text. Imports are of npm's packages, or of files that `imports` names.
const compile = (solc, text, contract, imports = {}) => {
    const outputSelection = { '*': { '*': ['evm.bytecode.object'] } };
    // Where Foundry's habits look for Solmate.
    const remappings = ['solmate/utils/=solmate/src/utils/'];
    const settings = { optimizer: { enabled: true, runs: 1000 }, remappings, outputSelection };
    const input = { language: 'Solidity', sources: { 'contract.sol': { content: text } }, settings };
    const read = path => ({ contents: fs.readFileSync(imports[path] || 'node_modules/' + path, 'utf8') });
    // Before 0.6 the reader was not in an object.
    const reader = solc === 'solc' ? { import: read } : read;
    const made = JSON.parse(require(solc).compile(JSON.stringify(input), reader));
    const wrong = (made.errors || []).filter(error => error.severity === 'error');
    if (wrong.length) throw new Error(wrong[0].formattedMessage);
    return made.contracts['contract.sol'][contract].evm.bytecode.object;
};
