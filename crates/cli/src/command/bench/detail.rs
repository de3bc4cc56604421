//! `bench --detail`: what the library tells beside the rate, as JSON fields and as lines for people.

use std::fmt::Write;

use serde::Serialize;
use warpsmith::proof::{Bench, Detail, Part, Profile};
use warpsmith_console::human;

/// Fields that a device does not tell are absent.
#[derive(Serialize)]
pub(super) struct DetailFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    steady_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_cpu_percent: Option<f64>,
    field_mul_rate: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<CardFields>,
}

/// What a search or a scan takes of a card.
#[derive(Serialize)]
pub(super) struct CardFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    registers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared_bytes: Option<u64>,
    block: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks_per_unit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    occupancy: Option<f64>,
    launch_ms: f64,
    parts: Vec<PartFields>,
}

#[derive(Serialize)]
struct PartFields {
    part: &'static str,
    picoseconds_per_key: f64,
    share: f64,
}

impl DetailFields {
    pub fn new(bench: &Bench, detail: &Detail) -> DetailFields {
        DetailFields {
            steady_rate: bench.steady_rate,
            host_cpu_percent: detail.host_cpu.map(|share| 100.0 * share),
            field_mul_rate: detail.field_mul,
            card: detail.profile.as_ref().map(CardFields::new),
        }
    }

    /// For people: a line a fact, indented under the row it belongs to.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "  {name:<22}{value}");
        };
        let too_short = || "unknown: the run was too short, give it more --seconds".to_owned();
        line("once settled", self.steady_rate.map_or_else(too_short, human::rate));
        let cpu = self.host_cpu_percent.map(|percent| format!("{percent:.1} % of one core"));
        line("host processor", cpu.unwrap_or_else(too_short));
        line("field products", human::rate(self.field_mul_rate));
        text + &self.card.as_ref().map(CardFields::text).unwrap_or_default()
    }
}

impl CardFields {
    pub fn new(profile: &Profile) -> CardFields {
        let whole: f64 = profile.parts.iter().map(|part| part.picoseconds).sum();
        let part = |part: &Part| PartFields {
            part: part.name,
            picoseconds_per_key: part.picoseconds,
            share: part.picoseconds / whole,
        };
        CardFields {
            registers: profile.resources.registers,
            local_bytes: profile.resources.local_bytes,
            shared_bytes: profile.resources.shared_bytes,
            block: profile.block,
            blocks_per_unit: profile.blocks_per_unit,
            occupancy: profile.occupancy(),
            launch_ms: profile.launch_ms,
            parts: profile.parts.iter().map(part).collect(),
        }
    }

    /// For people: a line a fact, indented under the row it belongs to.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "  {name:<22}{value}");
        };
        let told = |value: Option<String>| {
            value.unwrap_or_else(|| "unknown: the interface does not tell".to_owned())
        };
        line("registers a lane", told(self.registers.map(|n| n.to_string())));
        line("local memory a lane", told(self.local_bytes.map(|n| format!("{n} bytes (spills and arrays)"))));
        line("shared memory a block", told(self.shared_bytes.map(|n| format!("{n} bytes"))));
        line("lanes a block", self.block.to_string());
        line("blocks a unit", told(self.blocks_per_unit.map(|n| n.to_string())));
        line("occupancy", told(self.occupancy.map(|share| format!("{:.0} %", 100.0 * share))));
        line("a launch", format!("{:.0} ms", self.launch_ms));
        for part in &self.parts {
            let (time, share) = (part.picoseconds_per_key, 100.0 * part.share);
            line(&format!("part: {}", part.part), format!("{time:.3} ps a key, {share:.1} %"));
        }
        text
    }
}
