//! Redaction of secrets in messages.
//!
//! Users paste private keys where addresses, patterns, ranges or file names belong, and error messages quote their input.
//! [`secret_kind`] decides what may be a key, wherever it was given; [`redacted`] puts a description in its place. Untrusted text
//! must not command a terminal or hide what it says: control characters and invisible ones are escaped.

use std::fmt::Write as _;
use std::sync::LazyLock;

use warpsmith_text::is_unprintable;

/// Shortest run of letters and digits that is redacted. Half a key is no key, and addresses are shorter; those that are not
/// have a known prefix.
const MIN_SECRET_LENGTH: usize = 48;

/// Fewest words of a wallet's mnemonic.
const MIN_MNEMONIC_WORDS: usize = 12;

/// Prefixes of long public texts.
const PUBLIC_PREFIXES: &[&str] =
    &["npub1", "note1", "nprofile1", "nevent1", "naddr1", "bc1", "tb1", "bcrt1", "ltc1", "tltc1"];

/// Constants of secp256k1 that appear in messages: the order n of its group, the last key n - 1, and the field's prime.
const CONSTANTS: [&str; 3] = [
    "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",
    "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140",
    "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f",
];

/// Returns which kind of secret a text may be; none if it cannot be one. Long texts count as secrets unless a known prefix says
/// otherwise.
pub fn secret_kind(text: &str) -> Option<String> {
    let words = words(text);
    if words >= MIN_MNEMONIC_WORDS {
        return Some(format!("{words} words, which may be those of a wallet"));
    }
    runs(text).find_map(|(_, run)| secret_run(run))
}

/// Returns the most consecutive words, whatever separates them.
fn words(text: &str) -> usize {
    let (mut most, mut row) = (0, 0);
    for piece in pieces(text) {
        row = if is_word(piece) { row + 1 } else { 0 };
        most = most.max(row);
    }
    most
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|piece| !piece.is_empty())
}

fn is_word(piece: &str) -> bool {
    (3..=8).contains(&piece.len()) && piece.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Iterates over maximal runs of letters and digits with their positions.
fn runs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(|c: char| c.is_ascii_alphanumeric())?;
        let length = text[start..].find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len() - start);
        rest = start + length;
        Some((start, &text[start..rest]))
    })
}

fn secret_run(run: &str) -> Option<String> {
    let digits = run.strip_prefix("0x").or(run.strip_prefix("0X")).unwrap_or(run);
    let lower = run.to_ascii_lowercase();
    let length = digits.len();
    if lower.starts_with("nsec1") && length >= 10 {
        return Some("an nsec, which is a private key".to_owned());
    }
    if lower.starts_with("ncryptsec1") && length >= 15 {
        return Some("an ncryptsec, which is an encrypted private key".to_owned());
    }
    let extended = |kind| lower.starts_with(char::is_alphabetic) && lower.get(1..4) == Some(kind);
    if extended("prv") && length >= 20 {
        return Some("an extended private key".to_owned());
    }
    let is_constant = CONSTANTS.iter().any(|constant| digits.eq_ignore_ascii_case(constant));
    let is_public =
        PUBLIC_PREFIXES.iter().any(|head| lower.starts_with(head)) || extended("pub") || is_constant;
    // An alphabet has each of its characters once; no key of that length does.
    let is_alphabet = digits.bytes().enumerate().all(|(at, byte)| !digits.as_bytes()[..at].contains(&byte));
    if length < MIN_SECRET_LENGTH || is_public || is_alphabet {
        return None;
    }
    let begins = |heads: &str| digits.starts_with(|c| heads.contains(c));
    Some(match length {
        _ if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            format!("{length} hexadecimal digits, which may be a private key")
        }
        51 | 52 if begins("5KL9c") => "what may be a private key in wallet import format".to_owned(),
        58 if digits.starts_with("6P") => "what may be an encrypted private key (BIP-38)".to_owned(),
        _ => format!("{length} letters and digits, which may be a private key"),
    })
}

/// Arguments of this process that may be a wallet's mnemonic. Words in a message cannot be told from a sentence of the program.
static MNEMONICS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    // Behind a flag's '=' as well.
    let values = arguments.flat_map(|argument| {
        let value = argument.split_once('=').map(|(_, value)| value.to_owned());
        [Some(argument), value].into_iter().flatten()
    });
    let wallets = values.filter(|value| words(value) >= MIN_MNEMONIC_WORDS);
    wallets.filter_map(|value| secret_kind(&value).map(|what| (value.trim().to_owned(), what))).collect()
});

/// Returns a message with possible secrets replaced by a description, and control and invisible characters escaped except for line
/// ends.
pub fn redacted(message: &str) -> String {
    let mut message = message.to_owned();
    for (wallet, what) in MNEMONICS.iter() {
        message = message.replace(wallet, &format!("[{what}]"));
    }
    for quote in ['\'', '"'] {
        if message.matches(quote).count() >= 2 {
            // Quoted text is user input; a sentence of the program does not consist of such words alone.
            let parts = message.split(quote).map(|part| match secret_kind(part) {
                Some(what) if words(part) >= MIN_MNEMONIC_WORDS && pieces(part).all(is_word) => {
                    format!("[{what}]")
                }
                _ => part.to_owned(),
            });
            message = parts.collect::<Vec<_>>().join(&quote.to_string());
        }
    }
    let (mut out, mut done) = (String::with_capacity(message.len()), 0);
    for (start, run) in runs(&message) {
        if let Some(what) = secret_run(run) {
            push_escaped(&mut out, &message[done..start]);
            let _ = write!(out, "[{what}]");
            done = start + run.len();
        }
    }
    push_escaped(&mut out, &message[done..]);
    out
}

/// Escapes control, bidirectional and invisible characters of untrusted text, except for line ends.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_escaped(&mut out, text);
    out
}

fn push_escaped(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '\n' => out.push('\n'),
            c if is_unprintable(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALLET: &str = "legal winner thank year wave sausage worth useful legal winner thank yellow";

    #[test]
    fn keys_in_every_form_are_described_and_not_repeated() {
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let secrets = [
            (hex.to_owned(), "64 hexadecimal digits"),
            (format!("0x{hex}"), "64 hexadecimal digits"),
            (hex.to_uppercase(), "64 hexadecimal digits"),
            (hex[..50].to_owned(), "50 hexadecimal digits"),
            (hex.replace('0', "O"), "letters and digits"),
            (format!("80{hex}01"), "68 hexadecimal digits"),
            ("KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn".to_owned(), "wallet import"),
            ("5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ".to_owned(), "wallet import"),
            ("nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5".to_owned(), "nsec"),
            ("NSEC1VL029MGPSPEDVA04G90VLTKH6FVH240ZQTV9K0T9AF8935KE9LAQSNLFE5".to_owned(), "nsec"),
            (format!("ncryptsec1{}", "q".repeat(152)), "encrypted"),
            (
                format!(
                    "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKm{}",
                    "P".repeat(44)
                ),
                "extended",
            ),
            ("6PRVWUbkzzsbcVac2qwfssoUJAN1Xhrg6bNk8J7Nzm5H7kxEbn2Nh2ZoGg".to_owned(), "BIP-38"),
            (WALLET.to_owned(), "12 words"),
            (WALLET.replace(' ', "-"), "12 words"),
        ];
        for (secret, what) in &secrets {
            assert!(secret_kind(secret).is_some_and(|told| told.contains(what)), "{secret}");
            for message in [
                format!("'{secret}' is no pattern"),
                format!("\"{secret}\": wrong"),
                format!("--range: '8000:{secret}' is wrong\nsecond line"),
                format!("could not open ..{secret}.txt"),
            ] {
                let told = redacted(&message);
                // Outside of quotes words are a sentence, unless they were an argument.
                if words(secret) < MIN_MNEMONIC_WORDS || message.starts_with(['\'', '"']) {
                    assert!(!told.contains(secret.as_str()) && told.contains(what), "{told}");
                }
                assert_eq!(told.contains('\n'), message.contains('\n'));
            }
        }
    }

    #[test]
    fn what_is_made_to_be_shown_is_shown() {
        let shown = [
            "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg",
            "bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr",
            "ltc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqp3mvzv",
            "0x4e59b44847b379578588920cA78FbF26c0B4956C",
            "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
            "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8",
            "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
            "keys are 1 to n - 1 = fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140",
            "'0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141' is no private key",
            "pattern 'a..c..e': it has '..' where that means nothing; write cafe (begins with), ..cafe (ends with), cafe..babe (begins and ends with), ..cafe.. (contains), or /regex/ for more",
            "what is wrong here is not one of the words that a wallet has, as it may well look to a reader",
        ];
        for text in shown {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn nothing_commands_the_terminal() {
        assert_eq!(redacted("a\x1b[2Jb\rc\u{9b}d\te\nf"), "a\\u{1b}[2Jb\\rc\\u{9b}d\\te\nf");
        assert_eq!(redacted("a\u{202e}b\u{200b}é"), "a\\u{202e}b\\u{200b}é");
    }
}
