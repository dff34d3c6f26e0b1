// SPDX-License-Identifier: Apache-2.0
// The accounts that the suite `wallets` signs with: ERC-1271 wallets of every temper, and a factory for wallets that are
// not there yet, as ERC-6492 has them.
pragma solidity 0.8.37;

interface IERC1271 {
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4);
}

/// Accepts what its owner signed.
contract Wallet is IERC1271 {
    address public owner;

    constructor(address owner_) {
        owner = owner_;
    }

    /// From this block on another key signs. Anyone may call it: these wallets hold nothing.
    function setOwner(address owner_) external {
        owner = owner_;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        if (signature.length != 65) return 0xffffffff;
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        bool ours = ecrecover(hash, uint8(signature[64]), r, s) == owner;
        return ours ? this.isValidSignature.selector : bytes4(0xffffffff);
    }
}

/// Makes wallets at addresses that are known before.
contract Factory {
    function deploy(address owner, bytes32 salt) external returns (address) {
        return address(new Wallet{salt: salt}(owner));
    }

    /// Where `deploy` puts the wallet.
    function addressOf(address owner, bytes32 salt) external view returns (address) {
        bytes32 code = keccak256(abi.encodePacked(type(Wallet).creationCode, abi.encode(owner)));
        return address(uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(this), salt, code)))));
    }
}

/// Answers with something else than the magic value.
contract WrongMagic is IERC1271 {
    function isValidSignature(bytes32, bytes calldata) external pure returns (bytes4) {
        return 0xdeadbeef;
    }
}

/// Reverts with a reason.
contract Reverting is IERC1271 {
    function isValidSignature(bytes32, bytes calldata) external pure returns (bytes4) {
        revert("this wallet signs nothing");
    }
}

/// A contract that is no wallet: it takes every call and returns nothing.
contract Silent {
    fallback() external {}
}

/// Never comes to an end: the node's limit ends it.
contract Endless is IERC1271 {
    function isValidSignature(bytes32, bytes calldata) external pure returns (bytes4) {
        while (true) {}
        return this.isValidSignature.selector;
    }
}
