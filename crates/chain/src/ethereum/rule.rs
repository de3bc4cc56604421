//! Rules: how a salt becomes an address, in a file that people write for a factory of their own (docs/rules.md has the grammar).
//!
//! Everything in a file is checked when it is read, expressions too, and a mistake is told with its line and column: an address that
//! nobody can create at is found out before it is searched for.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use warpsmith_text::{is_unprintable, toml_mistake};

use super::abi::AbiType;
use super::expression::{Content, Expression, Mistake, RESERVED, Scope, Values, is_simple, parameters, size};
use super::factory::{Argument, Case, Input, Outcome, PROXY_CODE_HASH};
use super::{Factory, decode, parse_hash};
use crate::Hashed;

/// A rule file that cannot be used, and where its mistake is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {why}")]
pub struct RuleError {
    /// Counted from 1.
    pub line: usize,
    /// The character, counted from 1.
    pub column: usize,
    /// What is wrong, and what is allowed.
    pub why: String,
}

/// What a file may hold.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Spanned<String>,
    summary: Option<Spanned<String>>,
    deployer: Option<Spanned<String>>,
    create2: Option<Spanned<String>>,
    create3: Option<Spanned<String>>,
    arguments: Option<Spanned<Vec<Spanned<String>>>>,
    proxy_code_hash: Option<Spanned<String>>,
    salt: Option<Spanned<String>>,
    guard: Option<Spanned<String>>,
    #[serde(default)]
    guards: Vec<Spanned<WrittenCase>>,
    init_code: Option<Spanned<String>>,
    #[serde(default)]
    constants: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    inputs: BTreeMap<Spanned<String>, Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCase {
    #[serde(default)]
    begins: Vec<Spanned<String>>,
    guard: Option<Spanned<String>>,
    refused: Option<Spanned<String>>,
    call: Option<Spanned<String>>,
}

/// A mistake at a byte of the file.
struct Wrong {
    at: usize,
    why: String,
}

fn wrong<T>(at: usize, why: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { at, why: why.into() })
}

impl Factory {
    /// Bytes of a rule, at most.
    pub const LONGEST_RULE: usize = 1 << 16;

    /// The factory of a rule that somebody wrote. A name of a factory that is known already would mean two things, and is refused.
    pub fn parse(text: &str) -> Result<Factory, RuleError> {
        Reading { text, is_built_in: false }.whole()
    }

    /// A factory that is built in.
    pub(super) fn read(text: &str) -> Result<Factory, RuleError> {
        Reading { text, is_built_in: true }.whole()
    }
}

/// The line and column of a byte.
fn place(text: &str, Wrong { at, why }: Wrong) -> RuleError {
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    // Untrusted text of the file is part of the message.
    RuleError { line, column, why: why.replace(is_unprintable, "?") }
}

/// A file that is being read.
struct Reading<'a> {
    text: &'a str,
    is_built_in: bool,
}

impl Reading<'_> {
    fn whole(&self) -> Result<Factory, RuleError> {
        let text = self.text;
        if text.len() > Factory::LONGEST_RULE {
            let why = format!("a rule has at most {} bytes, not {}", Factory::LONGEST_RULE, text.len());
            return Err(RuleError { line: 1, column: 1, why });
        }
        let written: Written = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span: Range<usize>| span.start);
            place(text, Wrong { at, why: toml_mistake(error.message()) })
        })?;
        self.factory(written).map_err(|wrong| place(text, wrong))
    }

    fn factory(&self, written: Written) -> Result<Factory, Wrong> {
        let (name_at, name) = (written.name.span().start, written.name.get_ref().clone());
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        if name.is_empty() || name.len() > 40 || !name.chars().all(is_plain) {
            return wrong(name_at, "a name has 1 to 40 of the characters a-z, 0-9, '-' and '.'");
        }
        if !self.is_built_in && Factory::find(&name).is_some() {
            return wrong(
                name_at,
                format!("{name} is the name of a factory that is built in; give yours another"),
            );
        }
        let summary = written.summary.as_ref().map_or(Ok(String::new()), sentence)?;
        let address = written.deployer.as_ref().map(|text| self.read(text, decode)).transpose()?;
        if written.create2.is_none() && written.create3.is_none() {
            return wrong(
                name_at,
                "say what is called: create2 = \"deploy(bytes32,bytes)\", or create3 = \"..\"",
            );
        }
        let offers_create3 = written.create3.is_some();
        if let (false, Some(hash)) = (offers_create3, &written.proxy_code_hash) {
            return wrong(hash.span().start, "only CREATE3 has a proxy; there is no create3 here");
        }
        if let (true, Some(code)) = (offers_create3, &written.init_code) {
            return wrong(
                code.span().start,
                "with create3 the code is not part of the address; leave it out",
            );
        }
        let proxy_code_hash =
            written.proxy_code_hash.as_ref().map(|text| self.read(text, parse_hash)).transpose()?;
        let salt = match &written.salt {
            None => AbiType::FixedBytes(32),
            Some(text) => self.read(text, |text| match AbiType::parse(text) {
                Ok(of @ (AbiType::Uint(_) | AbiType::FixedBytes(_))) => Ok(of),
                _ => Err("a salt is bytes32, uint256, or shorter: uintN or bytesN"),
            })?,
        };
        let mut factory = Factory {
            name,
            summary,
            address,
            create2: written.create2.as_ref().map(call).transpose()?,
            create3: written.create3.as_ref().map(call).transpose()?,
            arguments: None,
            proxy_code_hash: proxy_code_hash.unwrap_or(PROXY_CODE_HASH),
            salt,
            cases: Vec::new(),
            init_code: None,
            constants: BTreeMap::new(),
            inputs: Vec::new(),
            text: self.text.to_owned(),
        };
        for (name, text) in &written.constants {
            named(name, &factory)?;
            let (of, value) = self.typed(text)?;
            let Some(value) = value else {
                return wrong(text.span().start, "a constant has a type and a value, as \"address 0x..\"");
            };
            let packed = self.read(text, |_| of.packed(&value))?;
            factory.constants.insert(name.get_ref().clone(), (of, packed));
        }
        for (name, text) in &written.inputs {
            named(name, &factory)?;
            let (of, value) = self.typed(text)?;
            let default =
                value.map(|value| self.read(text, |_| factory.read_input(&of, &value))).transpose()?;
            factory.inputs.push(Input { name: name.get_ref().clone(), of, default });
        }
        let values = stand_ins(&factory);
        self.cases(&mut factory, &values, written.guard.as_ref(), &written.guards)?;
        factory.init_code = match &written.init_code {
            None => None,
            Some(text) => {
                Some(self.expression(text, &factory, &values, |code, scope| code.bytes(scope).map(drop))?)
            }
        };
        self.arguments(&mut factory, &written)?;
        for name in written.inputs.keys() {
            let is_used = factory.expressions().any(|expression| expression.uses(name.get_ref()))
                || factory
                    .arguments
                    .iter()
                    .flatten()
                    .any(|one| *one == Argument::Value(name.get_ref().clone()));
            if !is_used {
                return wrong(name.span().start, format!("the input '{}' is used nowhere", name.get_ref()));
            }
        }
        Ok(factory)
    }

    /// Something read out of a text, or why not.
    fn read<T, E: ToString>(
        &self,
        text: &Spanned<String>,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, Wrong> {
        parse(text.get_ref()).or_else(|error| wrong(text.span().start, error.to_string()))
    }

    /// `address 0x..`: a type, and a value where there is one.
    fn typed(&self, text: &Spanned<String>) -> Result<(AbiType, Option<String>), Wrong> {
        let (of, value) = match text.get_ref().trim().split_once(char::is_whitespace) {
            Some((of, value)) => (of, Some(value)),
            None => (text.get_ref().trim(), None),
        };
        match AbiType::parse(of) {
            // Long ones are written in several lines.
            Ok(of) if is_simple(&of) => {
                Ok((of, value.map(|value| value.chars().filter(|c| !c.is_ascii_whitespace()).collect())))
            }
            _ => wrong(
                text.span().start,
                format!(
                    "'{of}' is no type that is known here: give address, uintN, bytesN or bytes, then the value"
                ),
            ),
        }
    }

    /// An expression, and whether it comes to what it must.
    fn expression(
        &self,
        text: &Spanned<String>,
        factory: &Factory,
        values: &Values,
        check: impl FnOnce(&Expression, &Scope<'_>) -> Result<(), Mistake>,
    ) -> Result<Expression, Wrong> {
        let scope = Scope { sender: [0; 20], chain_id: 0, this: [0; 20], salt: &factory.salt, values };
        let read = Expression::parse(text.get_ref()).and_then(|read| check(&read, &scope).map(|()| read));
        read.map_err(|Mistake { at, why }| {
            let (whole, span) = (text.get_ref(), text.span());
            // With escapes in the text its characters are elsewhere; then its beginning must do.
            let within = self.text.get(span.clone()).and_then(|raw| raw.find(whole.as_str()));
            Wrong { at: within.map_or(span.start, |within| span.start + within + at), why }
        })
    }

    fn guard(&self, text: &Spanned<String>, factory: &Factory, values: &Values) -> Result<Expression, Wrong> {
        self.expression(text, factory, values, |guard, scope| match guard.salt(scope)? {
            Content::Hash(message) if message.len(size(scope.salt).unwrap_or(32)) > Hashed::MOST => {
                let bytes = message.len(size(scope.salt).unwrap_or(32));
                let why = format!(
                    "{bytes} bytes are hashed here with the salt in them, and {} is the most that is searched; hash long values \
                     before: keccak256(..)",
                    Hashed::MOST
                );
                Err(Mistake { at: 0, why })
            }
            _ => Ok(()),
        })
    }

    /// What becomes of salts: one guard, or several by how they begin.
    fn cases(
        &self,
        factory: &mut Factory,
        values: &Values,
        guard: Option<&Spanned<String>>,
        guards: &[Spanned<WrittenCase>],
    ) -> Result<(), Wrong> {
        if let (Some(guard), Some(_)) = (guard, guards.first()) {
            return wrong(guard.span().start, "give guard, or [[guards]] by how the salt begins, not both");
        }
        let all = |outcome| Case { by_sender: false, begins: Vec::new(), outcome, call: None };
        if guards.is_empty() {
            let read = match guard {
                Some(text) => self.guard(text, factory, values)?,
                None => plain(factory).or_else(|mistake| wrong(0, mistake.why))?,
            };
            factory.cases = vec![all(Outcome::Guard(read))];
            return Ok(());
        }
        for one in guards {
            let (at, written) = (one.span().start, one.get_ref());
            let outcome = match (&written.guard, &written.refused) {
                (Some(text), None) => Outcome::Guard(self.guard(text, factory, values)?),
                (None, Some(why)) => Outcome::Refused(sentence(why)?),
                _ => return wrong(at, "each of [[guards]] has a guard = \"..\", or refused = \"why\""),
            };
            let (by_sender, begins) = self.begins(&written.begins, factory, at)?;
            let call = written.call.as_ref().map(call).transpose()?;
            let case = Case { by_sender, begins, outcome, call };
            if factory.cases.iter().any(|before| covers(before, &case)) {
                return wrong(at, "a salt never comes to this: one of the [[guards]] before it takes it");
            }
            factory.cases.push(case);
        }
        let last = guards.last().map_or(0, |last| last.span().start);
        if !factory.cases.last().is_some_and(takes_all) {
            return wrong(
                last,
                "the last of [[guards]] must say what becomes of all other salts: leave its begins out",
            );
        }
        Ok(())
    }

    fn begins(
        &self,
        parts: &[Spanned<String>],
        factory: &Factory,
        at: usize,
    ) -> Result<(bool, Vec<u8>), Wrong> {
        let (mut by_sender, mut begins) = (false, Vec::new());
        for (index, part) in parts.iter().enumerate() {
            match part.get_ref().as_str() {
                "msg.sender" if index == 0 => by_sender = true,
                "msg.sender" => {
                    return wrong(
                        part.span().start,
                        "msg.sender stands first, where the salt begins with it",
                    );
                }
                digits if digits.starts_with("0x") && digits.len() > 2 => {
                    begins.extend(self.read(part, |_| AbiType::Bytes.packed(digits))?);
                }
                _ => {
                    return wrong(
                        part.span().start,
                        "a salt begins with \"msg.sender\", or with bytes: \"0x..\"",
                    );
                }
            }
        }
        let bytes = begins.len() + if by_sender { 20 } else { 0 };
        if bytes > 31 {
            return wrong(
                at,
                format!("{bytes} bytes are told by begins; a salt has 32, and one at least is free"),
            );
        }
        if bytes > 0 && size(&factory.salt) != Some(32) {
            return wrong(at, format!("salts of type {} are not told apart by how they begin", factory.salt));
        }
        Ok((by_sender, begins))
    }

    /// What the call is given.
    fn arguments(&self, factory: &mut Factory, written: &Written) -> Result<(), Wrong> {
        let Some(arguments) = &written.arguments else { return Ok(()) };
        let mut read = Vec::new();
        for one in arguments.get_ref() {
            let name = one.get_ref();
            read.push(match name.as_str() {
                "salt" => Argument::Salt,
                "code" if factory.init_code.is_some() => {
                    return wrong(
                        one.span().start,
                        "the code follows from init_code, so the call is not given it",
                    );
                }
                "code" => Argument::Code,
                _ if stand_ins(factory).contains_key(name) => Argument::Value(name.clone()),
                _ => {
                    return wrong(
                        one.span().start,
                        format!("'{name}' is no constant and no input, nor salt or code"),
                    );
                }
            });
        }
        let calls = [&written.create2, &written.create3].into_iter().flatten();
        let own = written.guards.iter().filter_map(|case| case.get_ref().call.as_ref());
        for call in calls.chain(own) {
            let Some(types) = parameters(call.get_ref()) else { continue };
            if types.len() != read.len() {
                let (takes, given) = (types.len(), read.len());
                return wrong(
                    call.span().start,
                    format!("it takes {takes} arguments, and arguments has {given}"),
                );
            }
        }
        if !read.contains(&Argument::Salt) {
            return wrong(arguments.span().start, "the salt is not among the arguments");
        }
        factory.arguments = Some(read);
        Ok(())
    }
}

impl Factory {
    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let guards = self.cases.iter().filter_map(|case| match &case.outcome {
            Outcome::Guard(guard) => Some(guard),
            Outcome::Refused(_) => None,
        });
        guards.chain(&self.init_code)
    }
}

fn takes_all(case: &Case) -> bool {
    !case.by_sender && case.begins.is_empty()
}

/// Whether all salts of a case belong to one before it. Two that begin alike and of which one looks at the chain are two functions of a
/// contract, and who calls it chooses.
fn covers(before: &Case, case: &Case) -> bool {
    let alike = (before.by_sender, &before.begins) == (case.by_sender, &case.begins);
    if alike && before.uses_chain() != case.uses_chain() {
        return false;
    }
    takes_all(before) || before.by_sender == case.by_sender && case.begins.starts_with(&before.begins)
}

/// The salt itself, as CREATE2 takes it where a contract does nothing with it.
fn plain(factory: &Factory) -> Result<Expression, Mistake> {
    let text = match &factory.salt {
        AbiType::Uint(256) | AbiType::FixedBytes(_) => "bytes32(salt)",
        _ => "bytes32(uint256(salt))",
    };
    let text = if factory.salt == AbiType::FixedBytes(32) { "salt" } else { text };
    Expression::parse(text)
}

/// Values of the right types, to try expressions with.
fn stand_ins(factory: &Factory) -> Values {
    let mut values = factory.constants.clone();
    for Input { name, of, default } in &factory.inputs {
        let value = default.clone().unwrap_or_else(|| vec![0; size(of).unwrap_or(0)]);
        values.insert(name.clone(), (of.clone(), value));
    }
    values
}

/// Whether a constant or an input may be called so.
fn named(name: &Spanned<String>, factory: &Factory) -> Result<(), Wrong> {
    let (at, name) = (name.span().start, name.get_ref());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_plain) || name.len() > 40
    {
        return wrong(at, "a name begins with a letter and has up to 40 letters, digits and '_'");
    }
    if RESERVED.contains(&name.as_str()) || AbiType::parse(name).is_ok() {
        return wrong(at, format!("'{name}' means something by itself; choose another name"));
    }
    if factory.constants.contains_key(name) {
        return wrong(at, format!("'{name}' is a constant already"));
    }
    Ok(())
}

/// What is called: it becomes part of a line for a shell, so it is a signature, or words.
fn call(text: &Spanned<String>) -> Result<String, Wrong> {
    let (at, text) = (text.span().start, text.get_ref());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.,:()[] ".contains(c);
    if text.trim().is_empty() || text.len() > 500 || !text.chars().all(is_plain) {
        return wrong(at, "a call is a signature, as deploy(bytes32,bytes), or words of letters and digits");
    }
    if text.contains('(') && !text.contains([' ', '.']) && parameters(text).is_none() {
        return wrong(at, format!("'{text}' is no signature, as deploy(bytes32,bytes) is"));
    }
    Ok(text.clone())
}

/// A line for people.
fn sentence(text: &Spanned<String>) -> Result<String, Wrong> {
    if text.get_ref().len() > 500 || text.get_ref().contains(is_unprintable) {
        return wrong(
            text.span().start,
            "give one line of at most 500 bytes, without control characters and invisible ones",
        );
    }
    Ok(text.get_ref().clone())
}

#[cfg(test)]
mod tests;
