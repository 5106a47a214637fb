//! HV: how much the views of one query disagree.
//!
//! With d⁽ᵖ⁾ ∈ R^K the distances of pair p and d* their mean: V = Σ_p ‖d* − d⁽ᵖ⁾‖²,
//! q_p = ‖d* − d⁽ᵖ⁾‖² / V, H = −Σ q_p log q_p, HV = H · V; 0 where V = 0.

/// Entropy-based geometric variance of the pair-distance vectors of one query.
pub fn geometric_variance(pairs: &[&[f32]]) -> f64 {
    let Some(first) = pairs.first() else { return 0.0 };
    let mut mean = vec![0f64; first.len()];
    for pair in pairs {
        mean.iter_mut().zip(*pair).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    mean.iter_mut().for_each(|sum| *sum /= pairs.len() as f64);
    let parts: Vec<f64> = pairs
        .iter()
        .map(|pair| mean.iter().zip(*pair).map(|(m, &d)| (m - f64::from(d)).powi(2)).sum())
        .collect();
    let total: f64 = parts.iter().sum();
    if total <= 0.0 {
        return 0.0;
    }
    let entropy = -parts
        .iter()
        .map(|part| part / total)
        .filter(|q| *q > 0.0)
        .map(|q| q * q.ln())
        .sum::<f64>();
    entropy * total
}

#[cfg(test)]
mod tests {
    use super::*;

    // d = np.array([[1., 2.], [3., 2.], [2., 5.]]); m = d.mean(0); s = ((d-m)**2).sum(1)
    // V = s.sum(); q = s/V; print(-(q*np.log(q)).sum()*V)  ->  7.325...
    #[test]
    fn matches_the_definition() {
        let found = geometric_variance(&[&[1.0, 2.0], &[3.0, 2.0], &[2.0, 5.0]]);
        let (s, v): ([f64; 3], f64) = ([2.0, 2.0, 4.0], 8.0);
        let expected = s.iter().map(|s| s * (v / s).ln()).sum::<f64>();
        assert!((found - expected).abs() < 1e-9);
    }

    #[test]
    fn no_disagreement_is_zero() {
        assert_eq!(geometric_variance(&[]), 0.0);
        assert_eq!(geometric_variance(&[&[1.0, 2.0]]), 0.0);
        assert_eq!(geometric_variance(&[&[1.0, 2.0], &[1.0, 2.0]]), 0.0);
    }
}
