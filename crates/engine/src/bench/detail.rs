//! What a benchmark tells beside a rate.

use crate::worker::measure::Profile;

/// What is known beside the rate.
///
/// See [`bench`](crate::bench()).
#[derive(Clone, Debug)]
pub struct Detail {
    /// Processor time the program took once the search had settled, as a share of one core.
    pub host_cpu: Option<f64>,
    /// Field multiplications a second.
    pub field_mul: f64,
    /// The card's share; none for a processor.
    pub profile: Option<Profile>,
}
