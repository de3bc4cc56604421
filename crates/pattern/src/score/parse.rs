//! Scores as text: `leading-zeros`, `like:dead..beef`, `10*leading-zeros+count:4`. What is written is read again.

use std::fmt::Write as _;

use super::{Feature, Likeness, MOST_PARTS, MOST_SCORE, MOST_WEIGHT, Part, SCORES, Score};

/// What is no score.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScoreError {
    /// Nothing is counted.
    #[error("nothing is counted; a score is one of {}", names())]
    Empty,
    /// A name that is none.
    #[error("there is no score '{given}'; there are {}", names())]
    Unknown {
        /// What was given.
        given: String,
    },
    /// A name without what it needs, or with what it does not take.
    #[error("'{given}' is not written as {name}: {needs}")]
    Argument {
        /// What was given.
        given: String,
        /// How it is written.
        name: &'static str,
        /// What it needs.
        needs: &'static str,
    },
    /// A weight that is none.
    #[error("a weight is a whole number from 1 to {MOST_WEIGHT}, not {given}")]
    Weight {
        /// What was given.
        given: i64,
    },
    /// A weight that is no number.
    #[error("'{given}' is no weight: a part of a sum is written WEIGHT*NAME, as in 10*leading-zeros")]
    NoNumber {
        /// What was given.
        given: String,
    },
    /// Too many parts.
    #[error("a sum has {MOST_PARTS} parts at most, not {given}")]
    Parts {
        /// How many were given.
        given: usize,
    },
    /// Weights that add up to too much.
    #[error("with these weights a score could be {max}; {MOST_SCORE} is the most: give smaller ones")]
    TooHigh {
        /// How much it could be.
        max: u32,
    },
}

fn names() -> String {
    SCORES.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

const DIGIT: &str = "D is one hex digit, 0 to 9 or a to f";
const TEXT: &str = "TEXT is 40 hex digits, ? for one that may be any and .. once for as many as are missing";

impl Feature {
    /// Reads the name of a feature.
    ///
    /// # Errors
    ///
    /// Where there is none of that name, or it is given something else than it needs.
    pub fn parse(text: &str) -> Result<Feature, ScoreError> {
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        let wrong = |name, needs| ScoreError::Argument { given: text.to_owned(), name, needs };
        let digit = |name| {
            let mut characters = argument.unwrap_or("").chars();
            let digit = characters.next().and_then(|digit| digit.to_digit(16));
            digit.filter(|_| characters.next().is_none()).map(|digit| digit as u8).ok_or(wrong(name, DIGIT))
        };
        let bare = |name, feature| match argument {
            None => Ok(feature),
            Some(_) => Err(wrong(name, "it is given nothing")),
        };
        match name {
            "leading-zeros" => bare("leading-zeros", Feature::LeadingZeros),
            "zeros" => bare("zeros", Feature::Zeros),
            "letters" => bare("letters", Feature::Letters),
            "digits" => bare("digits", Feature::Digits),
            "pairs" => bare("pairs", Feature::Pairs),
            "run" => bare("run", Feature::Run),
            "mirrored" => bare("mirrored", Feature::Mirrored),
            "uniswap" => bare("uniswap", Feature::Uniswap),
            "leading" => digit("leading:D").map(Feature::Leading),
            "count" => digit("count:D").map(Feature::Count),
            "like" => {
                argument.and_then(Likeness::parse).map(Feature::Like).ok_or_else(|| wrong("like:TEXT", TEXT))
            }
            _ => Err(ScoreError::Unknown { given: text.to_owned() }),
        }
    }

    /// The name that is read again as this.
    pub fn name(self) -> String {
        match self {
            Feature::LeadingZeros => "leading-zeros".to_owned(),
            Feature::Zeros => "zeros".to_owned(),
            Feature::Leading(digit) => format!("leading:{digit:x}"),
            Feature::Count(digit) => format!("count:{digit:x}"),
            Feature::Like(like) => format!("like:{}", like.text()),
            Feature::Letters => "letters".to_owned(),
            Feature::Digits => "digits".to_owned(),
            Feature::Pairs => "pairs".to_owned(),
            Feature::Run => "run".to_owned(),
            Feature::Mirrored => "mirrored".to_owned(),
            Feature::Uniswap => "uniswap".to_owned(),
        }
    }
}

impl Likeness {
    /// Reads forty digits of which some are open; none where it is not that, or all are.
    fn parse(text: &str) -> Option<Likeness> {
        let text = text.strip_prefix("0x").unwrap_or(text);
        let whole = match text.split_once("..") {
            Some((start, end)) => {
                let open = 40usize.checked_sub(start.len() + end.len())?;
                format!("{start}{}{end}", "?".repeat(open))
            }
            None => text.to_owned(),
        };
        if whole.len() != 40 {
            return None;
        }
        let mut like = Likeness { mask: [0; 3], value: [0; 3] };
        for (place, digit) in whole.chars().enumerate().filter(|(_, digit)| *digit != '?') {
            let shift = 60 - 4 * (place % 16);
            like.mask[place / 16] |= 15 << shift;
            like.value[place / 16] |= u64::from(digit.to_digit(16)?) << shift;
        }
        (like.mask != [0; 3]).then_some(like)
    }

    fn text(self) -> String {
        let digit = |place: usize| {
            let shift = 60 - 4 * (place % 16);
            let value = (self.value[place / 16] >> shift & 15) as u32;
            let is_open = self.mask[place / 16] >> shift & 1 == 0;
            if is_open { '?' } else { char::from_digit(value, 16).expect("four bits") }
        };
        (0..40).map(digit).collect()
    }
}

impl Score {
    /// Reads a score: a name, or several with their weights, as in `10*leading-zeros+count:4`.
    ///
    /// ```
    /// use warpsmith_pattern::Score;
    ///
    /// let score = Score::parse("10*leading-zeros+count:4")?;
    /// assert_eq!(score.max(), 10 * 20 + 40);
    /// assert_eq!(Score::parse(&score.name())?, score);
    /// # Ok::<(), warpsmith_pattern::ScoreError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Where a part is no score, or their sum is none.
    pub fn parse(text: &str) -> Result<Score, ScoreError> {
        let part = |text: &str| {
            let text = text.trim();
            let (weight, name) = match text.split_once('*') {
                None => (1, text),
                Some((weight, name)) => {
                    let number = weight.trim().parse::<i64>();
                    let number =
                        number.map_err(|_| ScoreError::NoNumber { given: weight.trim().to_owned() })?;
                    let weight = u32::try_from(number).map_err(|_| ScoreError::Weight { given: number })?;
                    (weight, name.trim())
                }
            };
            Ok(Part { weight, feature: Feature::parse(name)? })
        };
        Score::sum(text.split('+').map(part).collect::<Result<_, _>>()?)
    }

    /// The text that is read again as this.
    pub fn name(&self) -> String {
        let mut text = String::new();
        for (i, part) in self.parts.iter().enumerate() {
            let plus = if i > 0 { "+" } else { "" };
            let times = if part.weight > 1 { format!("{}*", part.weight) } else { String::new() };
            let _ = write!(text, "{plus}{times}{}", part.feature.name());
        }
        text
    }
}
