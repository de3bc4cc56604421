//! Methods of a node that only read, so that a call of one can be repeated.

/// Methods that change nothing, neither on the chain nor in the node, so that they can be sent
/// again. Filters are not among them: a node forgets what it has told of these.
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
/// use warpsmith_eth_state::node::is_read_method;
///
/// assert!(is_read_method("eth_call") && !is_read_method("eth_sendRawTransaction"));
/// ```
pub fn is_read_method(method: &str) -> bool {
    READS.binary_search(&method).is_ok()
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
