//! Arithmetic on dims. What cannot be told is unknown, never a guess; a size too large to write down is unknown too.

use crate::{Dim, Shape};

/// Ranks beyond this are not followed: no engine runs them, and a hostile file would make every value large.
pub(super) const MAX_RANK: usize = 64;

pub(super) const ONE: Dim = Dim::Static(1);

/// A size, where it is one that ONNX can write.
pub(super) fn size(size: i128) -> Dim {
    i64::try_from(size).ok().and_then(|s| u64::try_from(s).ok()).map_or(Dim::Unknown, Dim::Static)
}

/// The dim of two operands' common result by the multidirectional rule of ONNX.
pub(super) fn broadcast_dim(a: &Dim, b: &Dim) -> Dim {
    match (a, b) {
        (a, b) if a == b => a.clone(),
        (Dim::Static(1), other) | (other, Dim::Static(1)) => other.clone(),
        (Dim::Static(_), Dim::Static(_)) => Dim::Unknown,
        // The other is 1 or the same, so the result is this.
        (Dim::Static(size), _) | (_, Dim::Static(size)) => Dim::Static(*size),
        _ => Dim::Unknown,
    }
}

pub(super) fn broadcast(a: &[Dim], b: &[Dim]) -> Vec<Dim> {
    let rank = a.len().max(b.len());
    let at = |dims: &[Dim], i: usize| {
        (i + dims.len()).checked_sub(rank).and_then(|i| dims.get(i)).cloned().unwrap_or(ONE)
    };
    (0..rank).map(|i| broadcast_dim(&at(a, i), &at(b, i))).collect()
}

/// The dim of two descriptions of one size: whichever says more.
pub(super) fn agree(a: &Dim, b: &Dim) -> Dim {
    match (a, b) {
        (Dim::Static(x), Dim::Static(y)) if x != y => Dim::Unknown,
        (Dim::Symbolic(_), Dim::Static(_)) | (Dim::Unknown, _) => b.clone(),
        _ => a.clone(),
    }
}

/// What holds of a value that is one or the other.
pub(super) fn either(a: &Shape, b: &Shape) -> Shape {
    let (a, b) = (a.as_ref()?, b.as_ref()?);
    let dim = |(a, b): (&Dim, &Dim)| if a == b { a.clone() } else { Dim::Unknown };
    (a.len() == b.len()).then(|| a.iter().zip(b).map(dim).collect())
}

pub(super) fn times(dim: &Dim, factor: u64) -> Dim {
    match (dim, factor) {
        (_, 0) => Dim::Static(0),
        (dim, 1) => dim.clone(),
        (Dim::Static(n), factor) => size(i128::from(*n).saturating_mul(i128::from(factor))),
        _ => Dim::Unknown,
    }
}

pub(super) fn product(dims: &[Dim]) -> Dim {
    // Nothing times whatever is nothing.
    if dims.contains(&Dim::Static(0)) {
        return Dim::Static(0);
    }
    dims.iter().fold(ONE, |all, dim| match (&all, dim) {
        (Dim::Static(n), other) | (other, Dim::Static(n)) => times(other, *n),
        _ => Dim::Unknown,
    })
}

pub(super) fn sum(a: &Dim, b: &Dim) -> Dim {
    match (a, b) {
        (Dim::Static(0), other) | (other, Dim::Static(0)) => other.clone(),
        (Dim::Static(a), Dim::Static(b)) => size(i128::from(*a) + i128::from(*b)),
        _ => Dim::Unknown,
    }
}

/// `dim / by`, where it comes out even whatever the symbols stand for.
pub(super) fn divide(dim: &Dim, by: u64) -> Dim {
    match dim {
        dim if by == 1 => dim.clone(),
        Dim::Static(n) if by > 0 && n % by == 0 => Dim::Static(n / by),
        _ => Dim::Unknown,
    }
}

/// The size that makes `rest` times it hold as many elements as `all`; symbols that stand on both sides cancel.
pub(super) fn quotient(all: &[Dim], rest: &[Dim]) -> Dim {
    let mut rest: Vec<&Dim> = rest.iter().collect();
    let mut left = Vec::new();
    for dim in all {
        match rest.iter().position(|r| matches!(dim, Dim::Symbolic(_)) && *r == dim) {
            Some(found) => drop(rest.swap_remove(found)),
            None => left.push(dim.clone()),
        }
    }
    let rest: Vec<Dim> = rest.into_iter().cloned().collect();
    match (product(&left), product(&rest)) {
        (left, Dim::Static(by)) => divide(&left, by),
        _ => Dim::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_dim() -> impl Strategy<Value = Dim> {
        prop_oneof![
            (0_u64..4).prop_map(Dim::Static),
            (u64::MAX - 2..u64::MAX).prop_map(Dim::Static),
            "[ab]".prop_map(Dim::Symbolic),
            Just(Dim::Unknown)
        ]
    }

    /// The size of a dim where `a` is 3, `b` is 1 and an unknown one is `unknown`.
    fn real(dim: &Dim, unknown: u64) -> u64 {
        match dim {
            Dim::Static(size) => *size,
            Dim::Symbolic(name) => {
                if name == "a" {
                    3
                } else {
                    1
                }
            }
            Dim::Unknown => unknown,
        }
    }

    proptest! {
        #[test]
        fn what_is_told_of_a_product_and_a_broadcast_is_true(
            dims in prop::collection::vec(any_dim(), 0..5), unknown in 0_u64..4
        ) {
            let sizes: Vec<u64> = dims.iter().map(|d| real(d, unknown)).collect();
            let told = product(&dims);
            if told != Dim::Unknown {
                let true_one = sizes.iter().fold(1_u128, |all, &n| all.saturating_mul(u128::from(n)));
                let true_one = if sizes.contains(&0) { 0 } else { true_one };
                prop_assert_eq!(u128::from(real(&told, 0)), true_one);
            }
            for (a, x) in dims.iter().zip(&sizes) {
                for (b, y) in dims.iter().zip(&sizes) {
                    let told = broadcast_dim(a, b);
                    if told != Dim::Unknown && (x == y || *x == 1 || *y == 1) {
                        prop_assert_eq!(real(&told, 0), if *x == 1 { *y } else { *x });
                    }
                }
            }
        }

        #[test]
        fn a_quotient_times_the_rest_is_all(
            rest in prop::collection::vec(any_dim(), 0..4), more in prop::collection::vec(any_dim(), 0..3),
            unknown in 1_u64..4
        ) {
            let all: Vec<Dim> = rest.iter().chain(&more).cloned().collect();
            let told = quotient(&all, &rest);
            let of = |dims: &[Dim]| {
                dims.iter().try_fold(1_u64, |n, d| n.checked_mul(real(d, unknown)))
            };
            if told != Dim::Unknown && let (Some(all), Some(rest)) = (of(&all), of(&rest)) && rest > 0 {
                prop_assert_eq!(real(&told, 0) * rest, all);
            }
        }
    }
}
