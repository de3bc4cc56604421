//! Hooks of Uniswap v4: the last 14 bits of the address are the flags, all of them and no others.

use crate::harness::{decimal, text, warpsmith};

fn flags(address: &str) -> u32 {
    u32::from_str_radix(&address[38..], 16).expect("hex digits") & 0x3fff
}

#[test]
fn hooks_have_the_flags_asked_for() {
    let hash = format!("0x{}", "5a".repeat(32));
    let create2 =
        ["create2", "--factory", "arachnid", "--init-code-hash", &hash, "--json", "--device", "cpu"];
    let create3 =
        ["create3", "--deployer", "0x4e59b44847b379578588920cA78FbF26c0B4956C", "--json", "--device", "cpu"];
    let eth = ["eth", "--contract", "--json", "--device", "cpu"];
    for (given, value) in
        [("beforeSwap,afterSwap", 0xc0), ("0x2000", 0x2000), ("AFTER_SWAP,AFTER_SWAP_RETURNS_DELTA", 0x44)]
    {
        for command in [&create2[..], &create3[..], &eth[..]] {
            let run = warpsmith(&[command, &["--hook-flags", given, "--count", "3"]].concat()).code(0);
            let found = run.json();
            assert_eq!(found.len(), 3);
            for line in &found {
                assert_eq!(flags(text(line, "address")), value, "{line}");
            }
        }
    }
    // Beside patterns of every kind.
    for pattern in ["a", "..a..", "/^[ab]/", "?b"] {
        let run = warpsmith(&[&create2[..], &[pattern, "--hook-flags", "BEFORE_SWAP"]].concat()).code(0);
        let found = run.json().remove(0);
        assert_eq!((flags(text(&found, "address")), text(&found, "pattern")), (0x80, pattern));
    }
    let estimate =
        warpsmith(&[&create2[..], &["a", "--hook-flags", "0x80", "--estimate"]].concat()).code(0).json();
    let difficulty = decimal(&estimate[0], "difficulty");
    assert!((difficulty / f64::from(1 << 18) - 1.0).abs() < 0.01, "{difficulty}");
    for (more, says) in [
        (&["--hook-flags", "SWAP"][..], "beforeSwap, afterSwap"),
        (&["--hook-flags", "0x4000"], "14 bits"),
        (&["--hook-flags", "BEFORE_SWAP_RETURNS_DELTA"], "without beforeSwap"),
        (&["..1", "--hook-flags", "BEFORE_SWAP"], "40th"),
    ] {
        let run =
            warpsmith(&[&["create2", "--factory", "arachnid", "--init-code-hash", &hash][..], more].concat());
        run.code(2).says(&[says]);
    }
}
