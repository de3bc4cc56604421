//! Arguments of a constructor as the code that is created gets them: encoded by the contract ABI, behind the creation code.
//!
//! Types are written as in an ABI (`uint256`, `address[]`, `(bytes32,string)[2]`), values as people write them on a command line:
//! numbers, addresses, `true`, `0x` and hex digits, text, `[a,b]` for arrays, `(a,b)` for tuples. A static value is its words; a
//! dynamic one an offset in the head and its words in the tail (Solidity's "Contract ABI Specification").
//!
//! By hand since the library for it brings more than a hundred others.

use std::fmt;

use super::decode;

/// A type of the ABI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AbiType {
    /// `uintN`.
    Uint(u16),
    /// `intN`.
    Int(u16),
    /// `address`.
    Address,
    /// `bool`.
    Bool,
    /// `bytesN`, 1 to 32.
    FixedBytes(usize),
    /// `bytes`.
    Bytes,
    /// `string`.
    Text,
    /// `T[]`, or `T[N]`.
    Array(Box<AbiType>, Option<usize>),
    /// `(T,U)`.
    Tuple(Vec<AbiType>),
}

/// What is wrong with a type or a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AbiError {
    /// A type that is none.
    #[error("'{0}' is no type of the contract ABI that is known here")]
    Type(String),
    /// More or fewer values than arguments.
    #[error("the constructor takes {wanted}, and {given} were given; its arguments are ({types})")]
    Count {
        /// How many were given.
        given: usize,
        /// How many it takes, in words.
        wanted: String,
        /// Of which types.
        types: String,
    },
    /// A value that does not fit its type.
    #[error("'{value}' is no {of}: {why}")]
    Value {
        /// The value.
        value: String,
        /// The type.
        of: String,
        /// What is wrong, and what is allowed.
        why: String,
    },
}

impl fmt::Display for AbiType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uint(bits) => write!(f, "uint{bits}"),
            Self::Int(bits) => write!(f, "int{bits}"),
            Self::Address => f.write_str("address"),
            Self::Bool => f.write_str("bool"),
            Self::FixedBytes(count) => write!(f, "bytes{count}"),
            Self::Bytes => f.write_str("bytes"),
            Self::Text => f.write_str("string"),
            Self::Array(of, None) => write!(f, "{of}[]"),
            Self::Array(of, Some(count)) => write!(f, "{of}[{count}]"),
            Self::Tuple(parts) => write!(f, "({})", names(parts)),
        }
    }
}

fn names(types: &[AbiType]) -> String {
    types.iter().map(AbiType::to_string).collect::<Vec<_>>().join(",")
}

/// Tuples and arrays in one type: far more than any contract has.
const MOST_NESTED: usize = 256;

impl AbiType {
    /// The type of a text.
    pub fn parse(text: &str) -> Result<Self, AbiError> {
        // It may be a stranger's word, and each of these is one level deeper on the stack.
        if text.bytes().filter(|byte| matches!(byte, b'(' | b'[')).count() > MOST_NESTED {
            return Err(AbiError::Type(text.chars().take(40).chain("...".chars()).collect()));
        }
        let wrong = || AbiError::Type(text.to_owned());
        if let Some(rest) = text.strip_suffix(']') {
            let (of, count) = rest.rsplit_once('[').ok_or_else(wrong)?;
            let count = match count {
                "" => None,
                digits => Some(
                    digits.parse().ok().filter(|count| (1..=1 << 16).contains(count)).ok_or_else(wrong)?,
                ),
            };
            return Ok(Self::Array(Box::new(Self::parse(of)?), count));
        }
        if let Some(parts) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
            let parts = split(parts).ok_or_else(wrong)?;
            return Ok(Self::Tuple(parts.iter().map(|part| Self::parse(part)).collect::<Result<_, _>>()?));
        }
        let bits = |digits: &str| match digits {
            "" => Some(256),
            digits => {
                digits.parse().ok().filter(|bits: &u16| *bits <= 256 && *bits > 0 && bits.is_multiple_of(8))
            }
        };
        Ok(match text {
            "address" | "address payable" => Self::Address,
            "bool" => Self::Bool,
            "bytes" => Self::Bytes,
            "string" => Self::Text,
            // What is called so is an address to the outside.
            _ if text.starts_with("contract ") => Self::Address,
            _ => match (text.strip_prefix("uint"), text.strip_prefix("int"), text.strip_prefix("bytes")) {
                (Some(digits), ..) => Self::Uint(bits(digits).ok_or_else(wrong)?),
                (_, Some(digits), _) => Self::Int(bits(digits).ok_or_else(wrong)?),
                (.., Some(digits)) => {
                    let count = digits.parse().ok().filter(|count| (1..=32).contains(count));
                    Self::FixedBytes(count.ok_or_else(wrong)?)
                }
                _ => return Err(wrong()),
            },
        })
    }

    fn is_dynamic(&self) -> bool {
        match self {
            Self::Bytes | Self::Text | Self::Array(_, None) => true,
            Self::Array(of, Some(_)) => of.is_dynamic(),
            Self::Tuple(parts) => parts.iter().any(Self::is_dynamic),
            _ => false,
        }
    }

    /// A value as it stands where it belongs: its words, or for a dynamic one what its offset leads to.
    fn encode(&self, value: &str) -> Result<Vec<u8>, AbiError> {
        let value = value.trim();
        let wrong = |why: &str| AbiError::Value {
            value: value.to_owned(),
            of: self.to_string(),
            why: why.to_owned(),
        };
        match self {
            Self::Uint(bits) => {
                unsigned(value, *bits).map(|word| word.to_vec()).map_err(|why| wrong(&why.to_string()))
            }
            Self::Int(bits) => {
                signed(value, *bits).map(|word| word.to_vec()).map_err(|why| wrong(&why.to_string()))
            }
            Self::Address => {
                let address = decode(value).map_err(|error| wrong(&error.to_string()))?;
                Ok([&[0; 12], address.as_slice()].concat())
            }
            Self::Bool => match value {
                "true" | "1" => Ok(word(1).to_vec()),
                "false" | "0" => Ok(word(0).to_vec()),
                _ => Err(wrong("write true or false")),
            },
            Self::FixedBytes(count) => {
                let mut bytes =
                    hex(value).ok_or_else(|| wrong("write 0x and an even number of hex digits"))?;
                if bytes.len() != *count {
                    return Err(wrong(&format!("it has {} bytes and not {count}", bytes.len())));
                }
                bytes.resize(32, 0);
                Ok(bytes)
            }
            Self::Bytes => {
                let bytes = hex(value).ok_or_else(|| wrong("write 0x and an even number of hex digits"))?;
                Ok(with_length(&bytes))
            }
            Self::Text => Ok(with_length(unquoted(value).as_bytes())),
            Self::Array(of, count) => {
                let inner = value.strip_prefix('[').and_then(|value| value.strip_suffix(']'));
                let values = inner
                    .and_then(split)
                    .ok_or_else(|| wrong("write its values in brackets, as in [a,b]"))?;
                if count.is_some_and(|count| count != values.len()) {
                    return Err(wrong(&format!("it has {} values", values.len())));
                }
                let types: Vec<&AbiType> = values.iter().map(|_| of.as_ref()).collect();
                let body = sequence(&types, &values)?;
                Ok(match count {
                    Some(_) => body,
                    None => [&word(values.len() as u64)[..], &body].concat(),
                })
            }
            Self::Tuple(parts) => {
                let inner = value.strip_prefix('(').and_then(|value| value.strip_suffix(')'));
                let values = inner
                    .and_then(split)
                    .ok_or_else(|| wrong("write its values in parentheses, as in (a,b)"))?;
                if parts.len() != values.len() {
                    return Err(wrong(&format!("it has {} values", values.len())));
                }
                sequence(&parts.iter().collect::<Vec<_>>(), &values)
            }
        }
    }
}

impl AbiType {
    /// A value without what fills its words, as `abi.encodePacked` has it: of numbers, addresses and bytes.
    pub(super) fn packed(&self, value: &str) -> Result<Vec<u8>, AbiError> {
        let encoded = self.encode(value)?;
        Ok(match self {
            Self::Address => encoded[12..].to_vec(),
            Self::Uint(bits) => encoded[32 - usize::from(*bits) / 8..].to_vec(),
            Self::FixedBytes(count) => encoded[..*count].to_vec(),
            Self::Bytes => hex(value.trim()).unwrap_or_default(),
            _ => encoded,
        })
    }
}

/// The arguments of a constructor, encoded.
pub fn encode_arguments(types: &[AbiType], values: &[String]) -> Result<Vec<u8>, AbiError> {
    if types.len() != values.len() {
        let wanted = match types.len() {
            0 => "no arguments".to_owned(),
            1 => "1 argument".to_owned(),
            n => format!("{n} arguments"),
        };
        return Err(AbiError::Count { given: values.len(), wanted, types: names(types) });
    }
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    sequence(&types.iter().collect::<Vec<_>>(), &values)
}

/// Heads and tails of values that belong together.
fn sequence(types: &[&AbiType], values: &[&str]) -> Result<Vec<u8>, AbiError> {
    let encoded = types.iter().zip(values).map(|(of, value)| of.encode(value));
    let encoded = encoded.collect::<Result<Vec<_>, _>>()?;
    let sizes: Vec<(bool, usize)> =
        types.iter().zip(&encoded).map(|(of, value)| (of.is_dynamic(), value.len())).collect();
    let (mut head, mut tail) = (Vec::new(), Vec::new());
    for (offset, value) in offsets(&sizes).into_iter().zip(encoded) {
        match offset {
            Some(offset) => {
                head.extend(word(offset as u64));
                tail.extend(value);
            }
            None => head.extend(value),
        }
    }
    head.extend(tail);
    Ok(head)
}

/// Where values that belong together lie, by whether they are dynamic and their sizes: a dynamic one has an offset in its place.
pub(super) fn offsets(parts: &[(bool, usize)]) -> Vec<Option<usize>> {
    let mut next: usize = parts.iter().map(|&(is_dynamic, size)| if is_dynamic { 32 } else { size }).sum();
    let offset = |&(is_dynamic, size): &(bool, usize)| {
        is_dynamic.then(|| {
            next += size;
            next - size
        })
    };
    parts.iter().map(offset).collect()
}

/// Parts between commas that lie in no brackets and no quotes; none where these do not close.
fn split(text: &str) -> Option<Vec<&str>> {
    if text.trim().is_empty() {
        return Some(Vec::new());
    }
    let (mut parts, mut first, mut depth, mut quoted) = (Vec::new(), 0, 0, false);
    for (at, character) in text.char_indices() {
        match character {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[first..at].trim());
                first = at + 1;
            }
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    parts.push(text[first..].trim());
    (depth == 0 && !quoted).then_some(parts)
}

/// Text as it is, or what stands between quotes.
fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

/// A number as a word.
pub(super) fn word(number: u64) -> [u8; 32] {
    let mut word = [0; 32];
    word[24..].copy_from_slice(&number.to_be_bytes());
    word
}

/// Bytes behind their number, filled up to whole words.
fn with_length(bytes: &[u8]) -> Vec<u8> {
    let mut value = [&word(bytes.len() as u64)[..], bytes].concat();
    value.resize(value.len().next_multiple_of(32), 0);
    value
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x")?;
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(value(*high)? << 4 | value(*low)?),
        _ => None,
    });
    pairs.collect()
}

/// Why a text is not a number of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum NumberError {
    #[error("write a whole number, in decimal digits or as 0x and hex digits")]
    Digits,
    #[error("it is not below 2^{bits}")]
    TooLarge { bits: u16 },
    #[error("it is not from -2^{0} to 2^{0} - 1", bits - 1)]
    OutOfRange { bits: u16 },
}

/// A number without a sign, in decimal or hexadecimal digits.
fn unsigned(text: &str, bits: u16) -> Result<[u8; 32], NumberError> {
    let (digits, base) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let too_large = NumberError::TooLarge { bits };
    let mut number = [0u8; 32];
    if digits.is_empty() {
        return Err(NumberError::Digits);
    }
    for digit in digits.chars().filter(|digit| *digit != '_') {
        let mut carry = digit.to_digit(base).ok_or(NumberError::Digits)?;
        for byte in number.iter_mut().rev() {
            let value = u32::from(*byte) * base + carry;
            (*byte, carry) = (value as u8, value >> 8);
        }
        if carry > 0 {
            return Err(too_large);
        }
    }
    let above = 32 - usize::from(bits) / 8;
    if number[..above].iter().any(|byte| *byte != 0) { Err(too_large) } else { Ok(number) }
}

/// A number with or without a sign, in two's complement.
fn signed(text: &str, bits: u16) -> Result<[u8; 32], NumberError> {
    let (digits, is_negative) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let size = unsigned(digits, 256)?;
    let mut least = [0u8; 32];
    let top = 32 - usize::from(bits) / 8;
    least[top] = 0x80;
    // -2^(bits-1) to 2^(bits-1) - 1.
    if size > least || (size == least && !is_negative) {
        return Err(NumberError::OutOfRange { bits });
    }
    if !is_negative {
        return Ok(size);
    }
    let (mut word, mut carry) = ([0; 32], 1u16);
    for (to, from) in word.iter_mut().zip(size).rev() {
        let value = u16::from(!from) + carry;
        (*to, carry) = (value as u8, value >> 8);
    }
    Ok(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(types: &str, values: &[&str]) -> Result<String, AbiError> {
        let AbiType::Tuple(types) = AbiType::parse(&format!("({types})"))? else { panic!("a tuple") };
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        let bytes = encode_arguments(&types, &values)?;
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The examples of Solidity's specification, without their selectors.
    #[test]
    fn arguments_are_encoded_as_the_specification_has_them() {
        let words = |lines: &[&str]| lines.concat();
        assert_eq!(
            encoded("bytes,bool,uint256[]", &["0x64617665", "true", "[1, 2,3]"]),
            Ok(words(&[
                "0000000000000000000000000000000000000000000000000000000000000060",
                "0000000000000000000000000000000000000000000000000000000000000001",
                "00000000000000000000000000000000000000000000000000000000000000a0",
                "0000000000000000000000000000000000000000000000000000000000000004",
                "6461766500000000000000000000000000000000000000000000000000000000",
                "0000000000000000000000000000000000000000000000000000000000000003",
                "0000000000000000000000000000000000000000000000000000000000000001",
                "0000000000000000000000000000000000000000000000000000000000000002",
                "0000000000000000000000000000000000000000000000000000000000000003",
            ]))
        );
        assert_eq!(
            encoded(
                "uint256,uint32[],bytes10,bytes",
                &["0x123", "[0x456,0x789]", "0x31323334353637383930", "0x48656c6c6f2c20776f726c6421"]
            ),
            Ok(words(&[
                "0000000000000000000000000000000000000000000000000000000000000123",
                "0000000000000000000000000000000000000000000000000000000000000080",
                "3132333435363738393000000000000000000000000000000000000000000000",
                "00000000000000000000000000000000000000000000000000000000000000e0",
                "0000000000000000000000000000000000000000000000000000000000000002",
                "0000000000000000000000000000000000000000000000000000000000000456",
                "0000000000000000000000000000000000000000000000000000000000000789",
                "000000000000000000000000000000000000000000000000000000000000000d",
                "48656c6c6f2c20776f726c642100000000000000000000000000000000000000",
            ]))
        );
        assert_eq!(
            encoded("uint256[][],string[]", &["[[1,2],[3]]", "[\"one\",two,three]"]),
            Ok(words(&[
                "0000000000000000000000000000000000000000000000000000000000000040",
                "0000000000000000000000000000000000000000000000000000000000000140",
                "0000000000000000000000000000000000000000000000000000000000000002",
                "0000000000000000000000000000000000000000000000000000000000000040",
                "00000000000000000000000000000000000000000000000000000000000000a0",
                "0000000000000000000000000000000000000000000000000000000000000002",
                "0000000000000000000000000000000000000000000000000000000000000001",
                "0000000000000000000000000000000000000000000000000000000000000002",
                "0000000000000000000000000000000000000000000000000000000000000001",
                "0000000000000000000000000000000000000000000000000000000000000003",
                "0000000000000000000000000000000000000000000000000000000000000003",
                "0000000000000000000000000000000000000000000000000000000000000060",
                "00000000000000000000000000000000000000000000000000000000000000a0",
                "00000000000000000000000000000000000000000000000000000000000000e0",
                "0000000000000000000000000000000000000000000000000000000000000003",
                "6f6e650000000000000000000000000000000000000000000000000000000000",
                "0000000000000000000000000000000000000000000000000000000000000003",
                "74776f0000000000000000000000000000000000000000000000000000000000",
                "0000000000000000000000000000000000000000000000000000000000000005",
                "7468726565000000000000000000000000000000000000000000000000000000",
            ]))
        );
        // Static arrays and tuples lie where they stand.
        assert_eq!(
            encoded(
                "bytes3[2],(address,bool)",
                &["[0x616263,0x646566]", "(0x4e59b44847b379578588920cA78FbF26c0B4956C,false)"]
            ),
            Ok(words(&[
                "6162630000000000000000000000000000000000000000000000000000000000",
                "6465660000000000000000000000000000000000000000000000000000000000",
                "0000000000000000000000004e59b44847b379578588920ca78fbf26c0b4956c",
                "0000000000000000000000000000000000000000000000000000000000000000",
            ]))
        );
        assert_eq!(encoded("", &[]), Ok(String::new()));
    }

    #[test]
    fn numbers_are_bounded_by_their_types() {
        let one = |of: &str, value: &str| encoded(of, &[value]);
        let max = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        assert_eq!(one("uint256", max), Ok("ff".repeat(32)));
        assert_eq!(one("uint8", "255"), Ok(format!("{:064x}", 255)));
        assert_eq!(one("int8", "-128"), Ok(format!("{}80", "ff".repeat(31))));
        assert_eq!(one("int256", "-1"), Ok("ff".repeat(32)));
        assert_eq!(one("int8", "127"), Ok(format!("{:064x}", 127)));
        assert_eq!(one("uint", "1_000"), Ok(format!("{:064x}", 1000)));
        for (of, value) in [
            ("uint8", "256"),
            ("uint256", &format!("{max}0")),
            ("uint256", "-1"),
            ("uint256", "1.5"),
            ("uint256", ""),
            ("int8", "128"),
            ("int8", "-129"),
            ("bool", "yes"),
            ("address", "0x12"),
            ("bytes4", "0x010203"),
            ("bytes", "0x1"),
            ("bytes", "abc"),
            ("uint8[2]", "[1]"),
            ("uint8[]", "1,2"),
            ("(uint8,bool)", "(1)"),
        ] {
            assert!(
                matches!(one(of, value), Err(AbiError::Value { .. })),
                "{of} {value}: {:?}",
                one(of, value)
            );
        }
        assert!(matches!(encoded("uint8,bool", &["1"]), Err(AbiError::Count { given: 1, .. })));
        for of in ["uint7", "uint264", "bytes33", "bytes0", "fixed", "uint8[0]", "(uint8", ""] {
            assert!(AbiType::parse(of).is_err(), "{of}");
        }
    }
}
