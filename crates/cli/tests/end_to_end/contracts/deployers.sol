// SPDX-License-Identifier: MIT OR Apache-2.0
// Contracts that hand a salt on unchanged: to CREATE2 itself, and to the CREATE3 libraries of others, as their own contracts do.
pragma solidity ^0.8.20;

import {CREATE3 as Solmate} from "solmate/src/utils/CREATE3.sol";
import {CREATE3 as Solady} from "solady/src/utils/CREATE3.sol";

contract PlainDeployer {
    function deploy(bytes32 salt, bytes memory code) external {
        assembly {
            if iszero(create2(0, add(code, 32), mload(code), salt)) { revert(0, 0) }
        }
    }
}

contract SolmateDeployer {
    function deploy(bytes32 salt, bytes memory code) external {
        Solmate.deploy(salt, code, 0);
    }
}

contract SoladyDeployer {
    function deploy(bytes32 salt, bytes memory code) external {
        Solady.deployDeterministic(code, salt);
    }
}
