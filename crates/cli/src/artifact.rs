//! Creation code from a file: hex digits, bytes, or what Foundry and Hardhat leave of a contract they compiled (JSON), with libraries
//! linked and constructor arguments behind it.

use std::collections::BTreeMap;

use serde::Deserialize;
use warpsmith::chain::ethereum::{
    self, AbiType, Address, BYTE_ORDER_MARK, CodeForm, encode_arguments, read_init_code,
};
use warpsmith_text::json_mistake;

/// What is read of an artifact. Foundry has the code in an object, Hardhat and Truffle as a text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Artifact {
    #[serde(default)]
    abi: Vec<AbiItem>,
    bytecode: Option<Bytecode>,
    /// Hardhat's.
    #[serde(default)]
    link_references: References,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Bytecode {
    Text(String),
    #[serde(rename_all = "camelCase")]
    Object {
        object: String,
        #[serde(default)]
        link_references: References,
    },
}

/// Where addresses of libraries belong: by source file, by name.
type References = BTreeMap<String, BTreeMap<String, Vec<Place>>>;

#[derive(Clone, Deserialize)]
struct Place {
    start: usize,
    length: usize,
}

#[derive(Deserialize)]
struct AbiItem {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    inputs: Vec<Input>,
}

#[derive(Deserialize)]
struct Input {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    components: Vec<Input>,
}

impl Input {
    /// The type as it is written where tuples have no names.
    fn type_name(&self) -> String {
        match self.kind.strip_prefix("tuple") {
            Some(arrays) => {
                let parts: Vec<String> = self.components.iter().map(Input::type_name).collect();
                format!("({}){arrays}", parts.join(","))
            }
            None => self.kind.clone(),
        }
    }
}

/// What a person says besides the file.
pub(crate) struct Given<'a> {
    /// Values for the constructor; or all of them encoded, as one text of hex digits, where nobody knows their types.
    pub arguments: Option<&'a [String]>,
    /// `NAME=0x..` or `FILE:NAME=0x..`.
    pub libraries: &'a [String],
}

/// Creation code that is ready to be hashed.
pub(crate) struct Finished {
    pub code: Vec<u8>,
    /// How the file has this very code, and whether as digits after `0x`; `None` where something was added or filled in.
    pub in_file: Option<(CodeForm, bool)>,
}

/// The creation code of a file, with all that belongs to it.
pub(crate) fn creation_code(given_file: &[u8], given: &Given<'_>) -> Result<Finished, String> {
    let file = given_file.strip_prefix(BYTE_ORDER_MARK).unwrap_or(given_file);
    let is_as_given = given.arguments.is_none() && given.libraries.is_empty() && file == given_file;
    if file.trim_ascii_start().first() != Some(&b'{') {
        if let Some(library) = given.libraries.first() {
            return Err(format!(
                "it is code without names in it, so nobody knows where --library {library} belongs; give the JSON that Foundry or Hardhat wrote"
            ));
        }
        let mut code = read_init_code(file).map_err(|error| error.to_string())?;
        code.extend(given.arguments.map_or(Ok(Vec::new()), encoded)?);
        let form = match code == file {
            true => Some((CodeForm::Bytes, false)),
            // A shell would take white space before the digits for the end of a word.
            false if file.first().is_some_and(u8::is_ascii_whitespace) => None,
            false => Some((CodeForm::Hex, file.starts_with(b"0x"))),
        };
        return Ok(Finished { code, in_file: form.filter(|_| is_as_given) });
    }
    let artifact: Artifact = serde_json::from_slice(file).map_err(|error| {
        format!(
            "it begins as JSON but is no artifact of Foundry or Hardhat: {}",
            json_mistake(&error.to_string())
        )
    })?;
    let (text, references, form) = match artifact.bytecode {
        Some(Bytecode::Text(text)) => (text, artifact.link_references, CodeForm::Hardhat),
        Some(Bytecode::Object { object, link_references }) => (object, link_references, CodeForm::Foundry),
        None => {
            return Err("it is JSON without \"bytecode\": give the artifact of one contract, as out/Token.sol/Token.json (Foundry) or \
                        artifacts/contracts/Token.sol/Token.json (Hardhat)"
                .to_owned());
        }
    };
    let code = linked(&text, &references, given.libraries)?;
    if code.is_empty() {
        return Err(
            "its \"bytecode\" is empty: interfaces and abstract contracts cannot be created".to_owned()
        );
    }
    let inputs =
        artifact.abi.iter().find(|item| item.kind == "constructor").map_or(&[][..], |item| &item.inputs);
    let types = inputs.iter().map(|input| AbiType::parse(&input.type_name())).collect::<Result<Vec<_>, _>>();
    let types = types.map_err(|error| format!("its constructor: {error}"))?;
    let arguments = match given.arguments {
        None if !types.is_empty() => {
            let names: Vec<String> = types.iter().map(ToString::to_string).collect();
            return Err(format!(
                "its constructor takes ({}), which are part of what is hashed: give them by --constructor-args, one after the other",
                names.join(",")
            ));
        }
        None => Vec::new(),
        // All of them encoded already, by `cast abi-encode` for one: a word each at least.
        Some([one]) if types.len() != 1 && is_words(one) && (one.len() - 2) / 64 >= types.len() => {
            encoded(std::slice::from_ref(one))?
        }
        Some(values) => {
            encode_arguments(&types, values).map_err(|error| format!("--constructor-args: {error}"))?
        }
    };
    let in_file = is_as_given.then(|| (form, text.starts_with("0x")));
    Ok(Finished { code: [code, arguments].concat(), in_file })
}

/// Whether a text is whole words in hex digits.
fn is_words(text: &str) -> bool {
    text.strip_prefix("0x").is_some_and(|digits| !digits.is_empty() && digits.len().is_multiple_of(64))
}

/// Arguments of which nobody knows the types, encoded by somebody else.
fn encoded(values: &[String]) -> Result<Vec<u8>, String> {
    match values {
        [one] if is_words(one) || one == "0x" => const_hex::decode(one).map_err(|error| format!("--constructor-args: {error}")),
        _ => Err("--constructor-args: a file of code alone does not say which types they have. Give all of them encoded, as one text of \
                  0x and hex digits (`cast abi-encode`), or the JSON that Foundry or Hardhat wrote"
            .to_owned()),
    }
}

/// Code with the addresses of its libraries.
fn linked(text: &str, references: &References, libraries: &[String]) -> Result<Vec<u8>, String> {
    let mut given = Vec::new();
    for library in libraries {
        let usage = || format!("--library {library}: write NAME=0x.. or FILE:NAME=0x..");
        let (name, address) = library.split_once('=').ok_or_else(usage)?;
        let address = ethereum::decode(address).map_err(|error| format!("--library {library}: {error}"))?;
        given.push((name, address));
    }
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let mut digits = digits.to_owned().into_bytes();
    let mut used = vec![false; given.len()];
    let mut missing = Vec::new();
    for (file, names) in references {
        for (name, places) in names {
            let full = format!("{file}:{name}");
            let mut fits = (0..given.len()).filter(|at| given[*at].0 == full || given[*at].0 == name);
            let Some(at) = fits.next() else {
                missing.push(full);
                continue;
            };
            used[at] = true;
            for place in places {
                put(&mut digits, place, &given[at].1)
                    .ok_or("its \"linkReferences\" lie outside of its code")?;
            }
        }
    }
    if !missing.is_empty() {
        return Err(format!(
            "{} not linked: {}. Their addresses are part of what is hashed: give each by --library NAME=0x..",
            if missing.len() == 1 { "a library is" } else { "libraries are" },
            missing.join(", ")
        ));
    }
    if let Some((name, _)) = given.iter().zip(&used).find(|(_, used)| !**used).map(|(given, _)| given) {
        return Err(format!("--library {name}: the contract uses no library of that name"));
    }
    if let Some(at) = digits.windows(2).position(|pair| pair == b"__") {
        let name: String = digits[at..].iter().take(40).map(|byte| char::from(*byte)).collect();
        return Err(format!(
            "a library is not linked: {}. Link it with the tool that compiled it",
            name.trim_matches(['_', '$'])
        ));
    }
    const_hex::decode(&digits).map_err(|error| format!("its \"bytecode\" is not hex digits: {error}"))
}

/// Puts an address where a library's belongs.
fn put(digits: &mut [u8], place: &Place, address: &Address) -> Option<()> {
    let at = digits.get_mut(2 * place.start..2 * place.start.checked_add(place.length)?)?;
    let text = const_hex::encode(address);
    (at.len() == text.len()).then(|| at.copy_from_slice(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUNDRY: &str = r#"{"abi":[{"type":"constructor","inputs":[{"name":"a","type":"uint256"},{"name":"b","type":"tuple[]",
        "components":[{"name":"x","type":"address"},{"name":"y","type":"bool"}]}]}],
        "bytecode":{"object":"0x6080__$0123456789abcdef0123456789abcdef01$__00","linkReferences":
        {"src/Math.sol":{"Math":[{"start":2,"length":20}]}}}}"#;
    const HARDHAT: &str = r#"{"_format":"hh-sol-artifact-1","contractName":"T","abi":[],"bytecode":"0x6001600255","linkReferences":{}}"#;
    const WORD: &str = "0x0000000000000000000000000000000000000000000000000000000000000005";
    const ADDRESS: &str = "0x4e59b44847b379578588920cA78FbF26c0B4956C";

    fn code(file: &str, arguments: Option<&[&str]>, libraries: &[&str]) -> Result<String, String> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let (arguments, libraries) = (arguments.map(owned), owned(libraries));
        let given = Given { arguments: arguments.as_deref(), libraries: &libraries };
        creation_code(file.as_bytes(), &given).map(|finished| const_hex::encode(finished.code))
    }

    #[test]
    fn files_that_hold_the_very_code_are_told_by_their_form() {
        let form = |file: &[u8], arguments: Option<&[String]>| {
            creation_code(file, &Given { arguments, libraries: &[] }).unwrap().in_file
        };
        assert_eq!(form(b"0x6001\n", None), Some((CodeForm::Hex, true)));
        assert_eq!(form(b"6001", None), Some((CodeForm::Hex, false)));
        assert_eq!(form(b" 6001", None), None);
        assert_eq!(form(b"\xef\xbb\xbf6001", None), None);
        assert_eq!(form(b"\x60\x01", None), Some((CodeForm::Bytes, false)));
        assert_eq!(form(HARDHAT.as_bytes(), None), Some((CodeForm::Hardhat, true)));
        let foundry = br#"{"bytecode":{"object":"6001"}}"#;
        assert_eq!(form(foundry, None), Some((CodeForm::Foundry, false)));
        assert_eq!(form(b"6001", Some(&[WORD.to_owned()])), None);
    }

    #[test]
    fn artifacts_are_linked_and_have_their_arguments() {
        let math = format!("Math={ADDRESS}");
        let values = ["5", &format!("[({ADDRESS},true)]")];
        let body = format!("6080{}00", &ADDRESS.to_lowercase()[2..]);
        let arguments =
            format!("{:064x}{:064x}{:064x}{:0>64}{:064x}", 5, 0x40, 1, &ADDRESS.to_lowercase()[2..], 1);
        assert_eq!(code(FOUNDRY, Some(&values), &[&math]), Ok(format!("{body}{arguments}")));
        // The same encoded by somebody else, and the library by its full name.
        let full = format!("src/Math.sol:{math}");
        assert_eq!(
            code(FOUNDRY, Some(&[&format!("0x{arguments}")]), &[&full]),
            Ok(format!("{body}{arguments}"))
        );
        assert_eq!(code(HARDHAT, None, &[]), Ok("6001600255".to_owned()));
        assert_eq!(code("0x6001", Some(&[&format!("0x{:064x}", 7)]), &[]), Ok(format!("6001{:064x}", 7)));
        assert_eq!(code("6001\n", None, &[]), Ok("6001".to_owned()));
        assert_eq!(code(&format!("\u{feff}{HARDHAT}"), None, &[]), Ok("6001600255".to_owned()));
    }

    #[test]
    fn what_is_missing_is_named() {
        let math = format!("Math={ADDRESS}");
        for (file, arguments, libraries, says) in [
            (FOUNDRY, None, &[][..], "src/Math.sol:Math"),
            (FOUNDRY, None, &[math.as_str()], "(uint256,(address,bool)[])"),
            (FOUNDRY, Some(&["5"][..]), &[&math], "2 arguments"),
            (FOUNDRY, Some(&["5", "7"]), &[&math], "in brackets"),
            // One word where two values are due is the first of them, and not all of them encoded.
            (FOUNDRY, Some(&[WORD]), &[&math], "2 arguments"),
            (HARDHAT, Some(&["5"]), &[], "no arguments"),
            (HARDHAT, None, &[&math], "no library of that name"),
            (r#"{"abi":[]}"#, None, &[], "without \"bytecode\""),
            (r#"{"abi":[],"bytecode":"0x"}"#, None, &[], "abstract"),
            (r#"{"abi":[],"bytecode":"0x60__$ab$__"}"#, None, &[], "not linked: ab"),
            ("{", None, &[], "no artifact"),
            ("6001", Some(&["5"]), &[], "cast abi-encode"),
            ("6001", None, &[&math], "Foundry"),
        ] {
            let error = code(file, arguments, libraries).expect_err(says);
            assert!(error.contains(says), "{error}");
        }
    }
}
