//! Calls of JSON-RPC to a node of Ethereum.
//!
//! SEC: a call that changes something is sent once. When the connection breaks after its bytes may have left, it cannot be told
//! whether the node has done it, so only calls that are known to read are sent again.

use std::io::{self, Read};

use super::Remote;
use super::exchange::{Exchange, Repeat};
use crate::error::Result;

/// Methods that change nothing, neither on the chain nor in the node, so that they can be sent again. Filters are not among
/// them: a node forgets what it has told of these.
const READS: [&str; 52] = [
    "anvil_dumpState",
    "debug_getRawBlock",
    "debug_getRawHeader",
    "debug_getRawReceipts",
    "debug_getRawTransaction",
    "debug_storageRangeAt",
    "debug_traceBlockByHash",
    "debug_traceBlockByNumber",
    "debug_traceCall",
    "debug_traceTransaction",
    "eth_accounts",
    "eth_blobBaseFee",
    "eth_blockNumber",
    "eth_call",
    "eth_chainId",
    "eth_coinbase",
    "eth_createAccessList",
    "eth_estimateGas",
    "eth_feeHistory",
    "eth_gasPrice",
    "eth_getBalance",
    "eth_getBlockByHash",
    "eth_getBlockByNumber",
    "eth_getBlockReceipts",
    "eth_getBlockTransactionCountByHash",
    "eth_getBlockTransactionCountByNumber",
    "eth_getCode",
    "eth_getHeaderByHash",
    "eth_getHeaderByNumber",
    "eth_getLogs",
    "eth_getProof",
    "eth_getRawTransactionByHash",
    "eth_getStorageAt",
    "eth_getTransactionByBlockHashAndIndex",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionByHash",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
    "eth_getUncleByBlockHashAndIndex",
    "eth_getUncleByBlockNumberAndIndex",
    "eth_getUncleCountByBlockHash",
    "eth_getUncleCountByBlockNumber",
    "eth_maxPriorityFeePerGas",
    "eth_protocolVersion",
    "eth_simulateV1",
    "eth_syncing",
    "net_listening",
    "net_peerCount",
    "net_version",
    "rpc_modules",
    "web3_clientVersion",
    "web3_sha3",
];

/// Whether a method of a node is known to change nothing, so that a call of it can be repeated.
///
/// ```
/// use warpsmith_pir::remote::is_read_method;
///
/// assert!(is_read_method("eth_call") && !is_read_method("eth_sendRawTransaction"));
/// ```
pub fn is_read_method(method: &str) -> bool {
    READS.binary_search(&method).is_ok()
}

impl Remote {
    /// Sends a call, or a batch of calls, of JSON-RPC to the address itself, and has `read` read the answer, which has at most
    /// `longest` bytes. Where `is_read` says that all of it only reads, it is sent again when the network fails, and then
    /// `read` is called again; otherwise only when nothing of it has been sent.
    ///
    /// # Errors
    ///
    /// When the node cannot be reached, refuses, or says more, and when `read` fails.
    pub fn call_node<T>(
        &self,
        call: &[u8],
        is_read: bool,
        longest: u64,
        mut read: impl FnMut(&mut dyn Read) -> io::Result<T>,
    ) -> Result<T> {
        let repeat = if is_read { Repeat::Always } else { Repeat::UnlessSent };
        let exchange = Exchange { of: None, method: "POST", path: "", body: call, longest, repeat };
        self.exchange(&exchange, &mut |response| read(&mut response.body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_that_change_something_are_no_reads() {
        assert!(READS.is_sorted(), "they are searched by halves");
        assert!(READS.iter().all(|method| is_read_method(method)));
        for method in [
            "eth_sendRawTransaction",
            "eth_sendTransaction",
            "eth_sendBundle",
            "eth_sign",
            "eth_newFilter",
            "eth_getFilterChanges",
            "personal_sendTransaction",
            "evm_mine",
            "anvil_setBalance",
            "eth_call ",
            "",
        ] {
            assert!(!is_read_method(method), "{method}");
        }
    }
}
