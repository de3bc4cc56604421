//! From the forms of the chains to the kernels' own enums, and back. This file alone knows both.
//!
//! The kernels keep enums apart because their programs differ: a search hashes both parities of an x, a scan the real one.

use warpsmith_chain::{Digest, Form, PublicPoint};
use warpsmith_curve::Affine;
use warpsmith_kernel::{points, scan};

use crate::worker::Fault;

/// What a search's kernel makes of a point. `tweak_bits` are the bits of a digit of taproot's tweak.
pub(crate) fn searched(form: Form, tweak_bits: u32) -> points::Digest {
    match form {
        Form::X => points::Digest::X,
        Form::Hash160 => points::Digest::Hash160,
        Form::Hash160Uncompressed => points::Digest::Hash160Uncompressed,
        Form::ScriptHash160 => points::Digest::ScriptHash160,
        Form::Account => points::Digest::Account,
        Form::Contract { .. } => points::Digest::Contract,
        Form::Taproot => points::Digest::Taproot { bits: tweak_bits },
    }
}

/// What a scan's kernels make of a key for each of these forms. A form that no scan computes is refused: left out, keys
/// that are wanted would be missed.
pub(crate) fn scanned(forms: &[Form]) -> Result<Vec<scan::Form>, Fault> {
    let made = |form: &Form| {
        let found = scan::Form::ALL.into_iter().find(|made| of_scan(*made) == *form);
        found.ok_or_else(|| format!("a scan does not compute {form:?}"))
    };
    forms.iter().map(made).collect()
}

/// The form of what a scan's kernel made.
pub(crate) fn of_scan(made: scan::Form) -> Form {
    match made {
        scan::Form::X => Form::X,
        scan::Form::Uncompressed => Form::Hash160Uncompressed,
        scan::Form::Compressed => Form::Hash160,
        scan::Form::Script => Form::ScriptHash160,
        scan::Form::Account => Form::Account,
        scan::Form::Taproot => Form::Taproot,
    }
}

/// The digest of a point by the reference code.
pub(crate) fn reference(form: Form, point: Affine) -> Digest {
    form.reference(&PublicPoint { x: point.x.to_be_bytes(), y: point.y.to_be_bytes() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_agree_with_forms_about_sizes_and_signs() {
        for form in Form::SCANNED.into_iter().chain([Form::Contract { nonce: 0 }]) {
            let made = searched(form, 8);
            assert_eq!((4 * made.words(), made.keys() == 6), (form.bytes(), form.signs()), "{form:?}");
        }
    }

    #[test]
    fn every_scanned_form_has_a_kernel_and_comes_back() {
        for form in Form::SCANNED {
            let made = scanned(&[form]).expect("a scan computes it");
            assert_eq!((of_scan(made[0]), made[0].bytes()), (form, form.bytes()));
        }
        assert_eq!(scan::Form::ALL.len(), Form::SCANNED.len());
        assert!(scanned(&[Form::X, Form::Contract { nonce: 0 }]).is_err());
    }
}
