//! Contains: characters that stand together somewhere in the text.
//!
//! Knows its one run of symbols. Where the run can stand is for the shape to find.

use super::{Kind, Pattern, symbols, wrong_characters};
use crate::Reason;
use crate::automaton::chance;
use crate::base58;
use crate::expr::Expr;
use crate::length::Set;
use crate::lower;
use crate::shape::{Item, Shape};
use crate::text::{Code, Text};

pub(super) const KIND: Kind = Kind {
    name: "contains",
    written: &[("..{end}..", "contains")],
    claims: |body| body.len() >= 4 && body.starts_with("..") && body.ends_with(".."),
    read: |body, text| Ok(Box::new(Contains::read(body, text)?)),
};

struct Contains {
    run: Vec<Set>,
    odds: f64,
}

impl Contains {
    fn read(body: &str, text: &Text) -> Result<Self, Reason> {
        let run = &body[2..body.len() - 2];
        if run.is_empty() || run.contains("..") {
            return Err(Reason::Dots);
        }
        let run = symbols(body, &[run], text)?.swap_remove(0);
        let mut this = Self { run, odds: 0.0 };
        let places = this.places(text);
        if places.is_empty() {
            return Err(match this.run.iter().any(|set| set & text.inner == 0) {
                true => wrong_characters(body, text),
                false => Reason::Nowhere { target: text.target },
            });
        }
        // The automaton knows how runs overlap themselves; with very many '?' it may give up. Then the places count
        // as independent: 1 - prod(1 - q).
        let run = Expr::Concat(this.run.iter().map(|&set| Expr::One(set)).collect());
        this.odds = match chance(&run, text) {
            Some(chance) if chance.miss == 0.0 && !text.is_restricted() => return Err(Reason::EveryKey),
            Some(chance) if chance.hit > 0.0 => chance.hit,
            _ => lower::union(places),
        };
        Ok(this)
    }

    /// The chance of each place the run can stand at, if the symbols fixed there can occur together.
    fn places(&self, text: &Text) -> Vec<f64> {
        match text.code {
            Code::Linear(_) => {
                let places = self.shape(text).placements(text, usize::MAX);
                places.iter().filter_map(|place| lower::odds(place, text)).collect()
            }
            // Anything can stand anywhere but at the very start.
            Code::Base58(_) => {
                let one = self.run.iter().map(|&set| base58::even(set)).product();
                vec![one; text.len() - self.run.len()]
            }
        }
    }

    fn shape(&self, text: &Text) -> Shape {
        let free = Shape::free(text);
        let run = self.run.iter().map(|&set| Item::One(set));
        Shape { items: [free].into_iter().chain(run).chain([free]).collect() }
    }
}

impl Pattern for Contains {
    fn matches(&self, body: &str, text: &Text) -> bool {
        let fits = |(set, &byte): (&Set, &u8)| text.value(byte).is_some_and(|value| set >> value & 1 == 1);
        body.as_bytes().windows(self.run.len()).any(|window| self.run.iter().zip(window).all(fits))
    }

    fn odds(&self) -> f64 {
        self.odds
    }

    fn shapes(&self, text: &Text) -> Vec<Shape> {
        vec![self.shape(text)]
    }
}
