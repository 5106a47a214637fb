//! Whole numbers of 64 bits that become 128 bits wide, as two halves, when they must.
//!
//! The unit never changes, so no bit is dropped: a sum is the same whole number whatever came first.
//! Numbers that fit 64 bits have no upper halves, so equal numbers are equal in memory and in files.

/// One of the numbers.
pub(super) fn number(low: &[i64], high: &[i64], at: usize) -> i128 {
    match high.get(at) {
        Some(&high) => joined(low[at], high),
        None => i128::from(low[at]),
    }
}

/// A number from its halves.
pub(crate) fn joined(low: i64, high: i64) -> i128 {
    i128::from(high) << 64 | i128::from(low.cast_unsigned())
}

/// The upper half of a number of which the lower one is kept as it is.
fn upper(number: i128) -> i64 {
    (number >> 64) as i64
}

/// All numbers as real ones, each times a factor.
pub(super) fn real(low: &[i64], high: &[i64], factor: f64) -> Vec<f64> {
    if high.is_empty() {
        return low.iter().map(|&low| low as f64 * factor).collect();
    }
    low.iter().zip(high).map(|(&low, &high)| joined(low, high) as f64 * factor).collect()
}

/// Lower and upper halves; no upper ones if every number fits the lower.
pub(super) fn split(numbers: &[i128]) -> (Vec<i64>, Vec<i64>) {
    let low: Vec<i64> = numbers.iter().map(|&number| number as i64).collect();
    let narrow = numbers.iter().zip(&low).all(|(&number, &low)| number == i128::from(low));
    let high = if narrow { Vec::new() } else { numbers.iter().map(|&n| upper(n)).collect() };
    (low, high)
}

/// Adds (1) or takes away (−1) numbers; `None` if one would need more than 128 bits.
pub(super) fn combine(
    (low, high): (&mut Vec<i64>, &mut Vec<i64>),
    (other, other_high): (&[i64], &[i64]),
    sign: i64,
) -> Option<()> {
    if high.is_empty() && other_high.is_empty() {
        let mut overflow = false;
        for (number, &other) in low.iter_mut().zip(other) {
            let (change, first) = other.overflowing_mul(sign);
            let (sum, second) = number.overflowing_add(change);
            (*number, overflow) = (sum, overflow | first | second);
        }
        if !overflow {
            return Some(());
        }
        // what wraps around is undone exactly
        for (number, &other) in low.iter_mut().zip(other) {
            *number = number.wrapping_sub(other.wrapping_mul(sign));
        }
    }
    let sums = (0..low.len()).map(|at| {
        let change = number(other, other_high, at).checked_mul(i128::from(sign))?;
        number(low, high, at).checked_add(change)
    });
    let sums: Vec<i128> = sums.collect::<Option<_>>()?;
    (*low, *high) = split(&sums);
    Some(())
}

/// Multiplies all numbers by a power of two, as a finer unit needs it.
pub(super) fn refine(low: &mut Vec<i64>, high: &mut Vec<i64>, bits: u32) -> Option<()> {
    let finer = (0..low.len()).map(|at| refined(number(low, high, at), bits));
    let finer: Vec<i128> = finer.collect::<Option<_>>()?;
    (*low, *high) = split(&finer);
    Some(())
}

/// A number times a power of two, if that can be held.
pub(super) fn refined(number: i128, bits: u32) -> Option<i128> {
    if number == 0 {
        return Some(0);
    }
    let factor = 1i128.checked_shl(bits).filter(|factor| *factor > 0)?;
    number.checked_mul(factor)
}
