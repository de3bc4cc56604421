//! Files that programs read.

/// A UTXO set of three coins, as Bitcoin Core dumps it: 50 coins to the whole public key of the private key 1, 3 and 4 satoshi to
/// the witness program of its hash.
pub fn utxo_set(network: &str) -> Vec<u8> {
    let x = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let program = "0014751e76e8199196d454941c45d1b3a323f1433bd6";
    let head = format!("7574786fff0200{network}{}{}", "ab".repeat(32), "0300000000000000");
    // Each transaction: its id, how many coins; each coin: its number, twice its height and whether it was mined, the amount and the
    // script, both compressed. 15 and 1f, 21 and 31, are 3 and 4 satoshi; 1c is 28, the six that are special and the 22 bytes of the program.
    let one = format!("{}01{}", "11".repeat(32), format_args!("000332{}{x}", "04"));
    let two = format!(
        "{}02{}{}",
        "22".repeat(32),
        format_args!("0002151c{program}"),
        format_args!("01021f1c{program}")
    );
    const_hex::decode(head + &one + &two).unwrap()
}
