//! What a factory computes before CREATE2, written as its contract writes it: a small part of Solidity's expressions.
//!
//! `keccak256(abi.encode(msg.sender, salt))`, `abi.encodePacked(creation_code, uint256(uint160(owner)))`: hashes, the two encodings, calls
//! of a signature, casts that lose nothing, constants, and names. There are no operators and no control flow. An expression is read once,
//! with the place of every part, and evaluated for the values of a search; what is left open is where the salt stands, which is what
//! devices fill in.

use std::collections::BTreeMap;

use super::abi::{AbiType, offsets, word};
use super::{Address, keccak256};

/// What is wrong with an expression, and where in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// The byte of the text where it begins.
    pub at: usize,
    pub why: String,
}

fn mistake<T>(at: usize, why: impl Into<String>) -> Result<T, Mistake> {
    Err(Mistake { at, why: why.into() })
}

/// An expression that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expression {
    /// As it is written, in one line.
    pub text: String,
    root: Node,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    at: usize,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Salt,
    /// `msg.sender`.
    Sender,
    /// `block.chainid`.
    ChainId,
    /// `address(this)`.
    This,
    /// A constant or an input.
    Name(String),
    /// `hex"6080"`.
    Bytes(Vec<u8>),
    /// `uint256(7)`, `address(0x..)`: a constant has the type that is written around it.
    Literal(AbiType, Vec<u8>),
    Cast(AbiType, Box<Node>),
    Keccak(Box<Node>),
    Encode(Vec<Node>),
    Packed(Vec<Node>),
    /// `abi.encodeWithSignature("f(address)", owner)`: the first four bytes of the signature's hash, then the arguments.
    Call([u8; 4], Vec<Node>),
}

/// Words that mean something by themselves; no constant or input is called so.
pub(super) const RESERVED: [&str; 8] = ["salt", "code", "keccak256", "abi", "msg", "block", "this", "hex"];

/// The types that values here have.
pub(super) fn is_simple(of: &AbiType) -> bool {
    matches!(of, AbiType::Address | AbiType::Uint(_) | AbiType::FixedBytes(_) | AbiType::Bytes)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A name, with dots within it.
    Word(&'a str),
    /// Digits, or `0x` and digits.
    Number(&'a str),
    /// What stands between double quotes.
    Quoted(&'a str),
    /// One of `(`, `)` and `,`.
    Sign(char),
    End,
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Word(text) | Token::Number(text) => write!(f, "'{text}'"),
            Token::Quoted(text) => write!(f, "\"{text}\""),
            Token::Sign(sign) => write!(f, "'{sign}'"),
            Token::End => f.write_str("its end"),
        }
    }
}

/// Parts within each other, at most: what reads them goes as deep.
const DEEPEST: usize = 16;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// The next token and where it begins, without going past it.
    fn peek(&mut self) -> Result<(usize, Token<'a>), Mistake> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        let (at, rest) = (self.at, &self.text[self.at..]);
        let end = |keep: fn(char) -> bool| rest.find(|c: char| !keep(c)).unwrap_or(rest.len());
        let token = match rest.chars().next() {
            None => Token::End,
            Some(sign @ ('(' | ')' | ',')) => Token::Sign(sign),
            Some('"') => match rest[1..].find('"') {
                Some(close) => Token::Quoted(&rest[1..1 + close]),
                None => return mistake(at, "the quotes are not closed"),
            },
            Some(digit) if digit.is_ascii_digit() => {
                Token::Number(&rest[..end(|c| c.is_ascii_alphanumeric() || c == '_')])
            }
            Some(letter) if letter.is_ascii_alphabetic() || letter == '_' => {
                Token::Word(&rest[..end(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')])
            }
            Some(other) => {
                return mistake(
                    at,
                    format!("{other:?} is not known here: there are keccak256, abi.encode, casts and names"),
                );
            }
        };
        Ok((at, token))
    }

    fn next(&mut self) -> Result<(usize, Token<'a>), Mistake> {
        let (at, token) = self.peek()?;
        self.at = at
            + match token {
                Token::Word(text) | Token::Number(text) => text.len(),
                Token::Quoted(text) => text.len() + 2,
                Token::Sign(_) => 1,
                Token::End => 0,
            };
        Ok((at, token))
    }

    fn expect(&mut self, sign: char) -> Result<(), Mistake> {
        match self.next()? {
            (_, Token::Sign(given)) if given == sign => Ok(()),
            (at, other) => mistake(at, format!("here must be '{sign}', not {other}")),
        }
    }

    /// What stands between parentheses, one after the other.
    fn list(&mut self) -> Result<Vec<Node>, Mistake> {
        let mut all = Vec::new();
        if self.peek()?.1 == Token::Sign(')') {
            self.next()?;
            return Ok(all);
        }
        loop {
            all.push(self.expression()?);
            match self.next()? {
                (_, Token::Sign(',')) => {}
                (_, Token::Sign(')')) => return Ok(all),
                (at, other) => return mistake(at, format!("here must be ',' or ')', not {other}")),
            }
        }
    }

    fn one(&mut self) -> Result<Box<Node>, Mistake> {
        let inner = self.expression()?;
        self.expect(')')?;
        Ok(Box::new(inner))
    }

    fn expression(&mut self) -> Result<Node, Mistake> {
        self.depth += 1;
        let (at, token) = self.next()?;
        if self.depth > DEEPEST {
            return mistake(at, format!("there are more than {DEEPEST} parts within each other"));
        }
        let Token::Word(name) = token else {
            return mistake(
                at,
                match token {
                    Token::Number(number) => format!(
                        "what type has {number}? Write uint256({number}), address(0x..), bytes32(0x..), or hex\"..\" for bytes"
                    ),
                    other => format!("here must be a value, not {other}"),
                },
            );
        };
        let kind = match (name, self.peek()?.1) {
            ("hex", Token::Quoted(digits)) => {
                self.next()?;
                match AbiType::Bytes.packed(&format!("0x{digits}")) {
                    Ok(bytes) => Kind::Bytes(bytes),
                    Err(_) => return mistake(at, "hex\"..\" holds an even number of hex digits"),
                }
            }
            (_, Token::Sign('(')) => {
                self.next()?;
                self.called(at, name)?
            }
            ("salt", _) => Kind::Salt,
            ("msg.sender", _) => Kind::Sender,
            ("block.chainid", _) => Kind::ChainId,
            _ => Kind::Name(name.to_owned()),
        };
        self.depth -= 1;
        Ok(Node { at, kind })
    }

    /// Something with parentheses, of which the first was read.
    fn called(&mut self, at: usize, name: &str) -> Result<Kind, Mistake> {
        match name {
            "keccak256" => return Ok(Kind::Keccak(self.one()?)),
            "abi.encode" => return Ok(Kind::Encode(self.list()?)),
            "abi.encodePacked" => return Ok(Kind::Packed(self.list()?)),
            "abi.encodeWithSignature" => {
                let (place, signature) = self.next()?;
                let Token::Quoted(signature) = signature else {
                    return mistake(place, "the signature stands first, as in \"initialize(address)\"");
                };
                let Some(types) = parameters(signature) else {
                    return mistake(
                        place,
                        format!("\"{signature}\" is no signature, as \"initialize(address)\" is"),
                    );
                };
                let arguments = match self.next()? {
                    (_, Token::Sign(',')) => self.list()?,
                    (_, Token::Sign(')')) => Vec::new(),
                    (at, other) => return mistake(at, format!("here must be ',' or ')', not {other}")),
                };
                if types.len() != arguments.len() {
                    let (takes, given) = (types.len(), arguments.len());
                    return mistake(
                        place,
                        format!("\"{signature}\" takes {takes} values, and here are {given}"),
                    );
                }
                let [a, b, c, d, ..] = keccak256(signature.as_bytes());
                return Ok(Kind::Call([a, b, c, d], arguments));
            }
            _ => {}
        }
        let Some(of) = AbiType::parse(name).ok().filter(|of| is_simple(of) && *of != AbiType::Bytes) else {
            return mistake(
                at,
                format!(
                    "'{name}(' is not known here: there are keccak256, abi.encode, abi.encodePacked, abi.encodeWithSignature, and casts \
                     to address, uintN and bytesN"
                ),
            );
        };
        match self.peek()? {
            (place, Token::Number(number)) => {
                self.next()?;
                self.expect(')')?;
                match of.packed(number) {
                    Ok(bytes) => Ok(Kind::Literal(of, bytes)),
                    Err(error) => mistake(place, error.to_string()),
                }
            }
            (_, Token::Word("this")) if of == AbiType::Address => {
                self.next()?;
                self.expect(')')?;
                Ok(Kind::This)
            }
            _ => Ok(Kind::Cast(of, self.one()?)),
        }
    }
}

/// The types of a signature's parameters, as `f(address,uint256)` has two; none where it is no signature.
pub(super) fn parameters(signature: &str) -> Option<Vec<AbiType>> {
    let open = signature.find('(')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    if open == 0 || !signature[..open].chars().all(is_name) {
        return None;
    }
    match AbiType::parse(&signature[open..]) {
        Ok(AbiType::Tuple(types)) => Some(types),
        _ => None,
    }
}

/// Bytes in which the salt stands at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub before: Vec<u8>,
    pub has_salt: bool,
    pub after: Vec<u8>,
}

impl Message {
    fn of(bytes: Vec<u8>) -> Message {
        Message { before: bytes, ..Message::default() }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.has_salt { &mut self.after } else { &mut self.before }.extend(bytes);
    }

    /// Puts another behind it; whether there is one salt at most.
    fn append(&mut self, other: &Message) -> bool {
        self.push(&other.before);
        if other.has_salt {
            if self.has_salt {
                return false;
            }
            self.has_salt = true;
            self.push(&other.after);
        }
        true
    }

    /// How many bytes there are with a salt of so many.
    pub fn len(&self, salt: usize) -> usize {
        self.before.len() + if self.has_salt { salt } else { 0 } + self.after.len()
    }
}

/// What an expression comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The bytes, packed.
    Bytes(Message),
    /// Keccak-256 of a message that has the salt in it.
    Hash(Message),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Value {
    of: AbiType,
    content: Content,
}

/// Constants and inputs by their names, packed.
pub(super) type Values = BTreeMap<String, (AbiType, Vec<u8>)>;

/// What names stand for.
pub(super) struct Scope<'a> {
    pub sender: Address,
    pub chain_id: u64,
    pub this: Address,
    /// The salt's type.
    pub salt: &'a AbiType,
    pub values: &'a Values,
}

/// Bytes of a type whose values all have the same number of them.
pub(super) fn size(of: &AbiType) -> Option<usize> {
    match of {
        AbiType::Address => Some(20),
        AbiType::Uint(bits) => Some(usize::from(*bits) / 8),
        AbiType::FixedBytes(count) => Some(*count),
        _ => None,
    }
}

impl Expression {
    pub fn parse(text: &str) -> Result<Expression, Mistake> {
        let mut reader = Reader { text, at: 0, depth: 0 };
        let root = reader.expression()?;
        match reader.next()? {
            (_, Token::End) => {
                let words: Vec<&str> = text.split_whitespace().collect();
                Ok(Expression { text: words.join(" "), root })
            }
            (at, other) => mistake(at, format!("the expression ends before {other}")),
        }
    }

    pub fn uses_sender(&self) -> bool {
        self.root.any(&|kind| *kind == Kind::Sender)
    }

    pub fn uses_chain(&self) -> bool {
        self.root.any(&|kind| *kind == Kind::ChainId)
    }

    pub fn hashes(&self) -> bool {
        self.root.any(&|kind| matches!(kind, Kind::Keccak(_)))
    }

    pub fn uses(&self, name: &str) -> bool {
        self.root.any(&|kind| matches!(kind, Kind::Name(own) if own == name))
    }

    /// The salt that CREATE2 is given.
    pub fn salt(&self, scope: &Scope<'_>) -> Result<Content, Mistake> {
        let Value { of, content } = self.root.value(scope)?;
        if size(&of) != Some(32) {
            return mistake(0, format!("this is of type {of}; the salt that CREATE2 is given has 32 bytes"));
        }
        match &content {
            Content::Bytes(message) | Content::Hash(message) if message.has_salt => Ok(content),
            _ => mistake(0, "there is no salt in this: all salts would lead to the same address"),
        }
    }

    /// Bytes that do not depend on the salt.
    pub fn bytes(&self, scope: &Scope<'_>) -> Result<Vec<u8>, Mistake> {
        let Value { of, content } = self.root.value(scope)?;
        match content {
            _ if of != AbiType::Bytes => {
                mistake(0, format!("this is of type {of}; code is bytes, as abi.encodePacked makes them"))
            }
            Content::Bytes(Message { before, has_salt: false, .. }) => Ok(before),
            _ => mistake(0, "the salt is part of it; code that changes with the salt is not searched here"),
        }
    }
}

impl Node {
    fn any(&self, is: &dyn Fn(&Kind) -> bool) -> bool {
        let within = match &self.kind {
            Kind::Cast(_, inner) | Kind::Keccak(inner) => inner.any(is),
            Kind::Encode(all) | Kind::Packed(all) | Kind::Call(_, all) => all.iter().any(|node| node.any(is)),
            _ => false,
        };
        within || is(&self.kind)
    }

    fn value(&self, scope: &Scope<'_>) -> Result<Value, Mistake> {
        let fixed = |of: AbiType, bytes: Vec<u8>| Value { of, content: Content::Bytes(Message::of(bytes)) };
        let bytes = |message: Message| Value { of: AbiType::Bytes, content: Content::Bytes(message) };
        Ok(match &self.kind {
            Kind::Salt => {
                let message = Message { has_salt: true, ..Message::default() };
                Value { of: scope.salt.clone(), content: Content::Bytes(message) }
            }
            Kind::Sender => fixed(AbiType::Address, scope.sender.to_vec()),
            Kind::ChainId => fixed(AbiType::Uint(256), word(scope.chain_id).to_vec()),
            Kind::This => fixed(AbiType::Address, scope.this.to_vec()),
            Kind::Name(name) => match scope.values.get(name) {
                Some((of, packed)) => fixed(of.clone(), packed.clone()),
                None => {
                    return mistake(
                        self.at,
                        format!(
                            "'{name}' is no constant and no input of this rule, nor salt, msg.sender or block.chainid"
                        ),
                    );
                }
            },
            Kind::Bytes(bytes) => fixed(AbiType::Bytes, bytes.clone()),
            Kind::Literal(of, bytes) => fixed(of.clone(), bytes.clone()),
            Kind::Cast(to, inner) => self.cast(to, inner.value(scope)?, scope)?,
            Kind::Keccak(inner) => {
                let Value { of, content } = inner.value(scope)?;
                // Solidity's own takes bytes alone; a hash of one word is written so too, and means its bytes.
                let hash = AbiType::FixedBytes(32);
                match content {
                    Content::Bytes(message) if message.has_salt => {
                        Value { of: hash, content: Content::Hash(message) }
                    }
                    Content::Bytes(message) if of == AbiType::Bytes || size(&of) == Some(32) => {
                        fixed(hash, keccak256(&message.before).to_vec())
                    }
                    Content::Bytes(_) => {
                        return mistake(
                            self.at,
                            format!("keccak256 is of bytes, not of {of}: use abi.encode or abi.encodePacked"),
                        );
                    }
                    Content::Hash(_) => return self.hashed_twice(),
                }
            }
            Kind::Packed(all) => {
                let mut whole = Message::default();
                for node in all {
                    self.join(&mut whole, &node.message(scope)?.1)?;
                }
                bytes(whole)
            }
            Kind::Encode(all) => bytes(self.encoded(all, scope)?),
            Kind::Call(selector, arguments) => {
                let mut whole = Message::of(selector.to_vec());
                self.join(&mut whole, &self.encoded(arguments, scope)?)?;
                bytes(whole)
            }
        })
    }

    fn hashed_twice<T>(&self) -> Result<T, Mistake> {
        mistake(self.at, "the salt is hashed within this already; it is hashed once at most before CREATE2")
    }

    fn join(&self, whole: &mut Message, part: &Message) -> Result<(), Mistake> {
        if whole.append(part) { Ok(()) } else { mistake(self.at, "the salt stands in this twice") }
    }

    /// The value as bytes, packed.
    fn message(&self, scope: &Scope<'_>) -> Result<(AbiType, Message), Mistake> {
        match self.value(scope)? {
            Value { of, content: Content::Bytes(message) } => Ok((of, message)),
            Value { content: Content::Hash(_), .. } => self.hashed_twice(),
        }
    }

    /// `abi.encode`: a word for each value, and bytes behind all words.
    fn encoded(&self, all: &[Node], scope: &Scope<'_>) -> Result<Message, Mistake> {
        let salt = size(scope.salt).unwrap_or(32);
        let mut parts = Vec::new();
        for node in all {
            let (of, message) = node.message(scope)?;
            let bytes = message.len(salt);
            let mut padded = Message::default();
            let is_dynamic = of == AbiType::Bytes;
            if is_dynamic {
                padded.push(&word(bytes as u64));
            } else if !matches!(of, AbiType::FixedBytes(_)) {
                padded.push(&vec![0; 32 - bytes]);
            }
            self.join(&mut padded, &message)?;
            padded.push(&vec![0; padded.len(salt).next_multiple_of(32) - padded.len(salt)]);
            parts.push((is_dynamic, padded));
        }
        let sizes: Vec<(bool, usize)> =
            parts.iter().map(|(is_dynamic, part)| (*is_dynamic, part.len(salt))).collect();
        let mut whole = Message::default();
        for ((_, part), offset) in parts.iter().zip(offsets(&sizes)) {
            match offset {
                Some(offset) => whole.push(&word(offset as u64)),
                None => self.join(&mut whole, part)?,
            }
        }
        for (_, part) in parts.iter().filter(|(is_dynamic, _)| *is_dynamic) {
            self.join(&mut whole, part)?;
        }
        Ok(whole)
    }

    /// A value as another type, where nothing is lost and nothing is guessed.
    fn cast(&self, to: &AbiType, value: Value, scope: &Scope<'_>) -> Result<Value, Mistake> {
        let Value { of, content } = value;
        let wide = size(to).expect("casts are to types of one size");
        let lost = || {
            mistake(
                self.at,
                format!("a {of} cannot be cast to {to} here: sizes must fit, and nothing is cut off"),
            )
        };
        let is_number = |of: &AbiType| matches!(of, AbiType::Uint(_) | AbiType::Address);
        let message = match content {
            // A hash has 32 bytes, whatever they are called.
            Content::Hash(_) if wide == 32 => return Ok(Value { of: to.clone(), content }),
            Content::Hash(_) => return self.hashed_twice(),
            Content::Bytes(message) => message,
        };
        let given = message.len(size(scope.salt).unwrap_or(32));
        let more = vec![0; wide.saturating_sub(given)];
        let mut whole = Message::default();
        let fits = match (&of, to) {
            _ if given == wide => whole.append(&message),
            _ if given > wide => false,
            // Numbers are filled up before them, bytes behind.
            (_, AbiType::Uint(_)) if is_number(&of) => {
                whole.push(&more);
                whole.append(&message)
            }
            (AbiType::FixedBytes(_), AbiType::FixedBytes(_)) => {
                let fits = whole.append(&message);
                whole.push(&more);
                fits
            }
            _ => false,
        };
        if !fits {
            return lost();
        }
        Ok(Value { of: to.clone(), content: Content::Bytes(whole) })
    }
}

#[cfg(test)]
mod tests;
