// SPDX-License-Identifier: MIT OR Apache-2.0
// A token launcher of the kind that hashes who is concerned into the salt: the admin before it, or the caller and the chain behind it.
pragma solidity ^0.8.20;

contract Token {
    string public name;
    address public admin;
    uint256 public supply;

    constructor(string memory name_, address admin_, uint256 supply_) {
        (name, admin, supply) = (name_, admin_, supply_);
    }
}

contract Launcher {
    function launch(string memory name, address admin, uint256 supply, bytes32 salt) external {
        new Token{salt: keccak256(abi.encode(admin, salt))}(name, admin, supply);
    }

    function launchHere(address admin, uint96 nonce) external {
        bytes32 salt = keccak256(abi.encodePacked(nonce, msg.sender, block.chainid));
        new Token{salt: salt}("Gold", admin, 1000);
    }
}
