//! The instructions themselves.

use std::arch::x86_64::{
    __m512, __m512i, _CMP_LE_OQ, _mm512_abs_ps, _mm512_add_epi32, _mm512_add_ps,
    _mm512_cmp_ps_mask, _mm512_cvtepi32_epi8, _mm512_cvtepi32_ps, _mm512_cvtps_epi32,
    _mm512_dpbusd_epi32, _mm512_fmadd_ps, _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps,
    _mm512_reduce_add_epi32, _mm512_reduce_add_ps, _mm512_reduce_max_ps, _mm512_reduce_min_ps,
    _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps, _mm512_setzero_si512, _mm512_sub_epi32,
    _mm512_sub_ps,
};

use super::{COLUMNS, LANES, MOST, ROWS, Rounded, STEP, Scores, Sums, VECTORS};

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn multiply(
    vectors: &[[u8; LANES * STEP]],
    rows: &[[i8; STEP]],
    steps: usize,
    sums: &mut Sums,
) {
    let mut columns = [&vectors[..0]; VECTORS];
    for (vector, columns) in columns.iter_mut().enumerate() {
        *columns = &vectors[vector * steps..(vector + 1) * steps];
    }
    let mut lines = [&rows[..0]; ROWS];
    for (row, line) in lines.iter_mut().enumerate() {
        *line = &rows[row * steps..(row + 1) * steps];
    }
    let mut all = [[_mm512_setzero_si512(); VECTORS]; ROWS];
    for step in 0..steps {
        let mut loaded = [_mm512_setzero_si512(); VECTORS];
        for (loaded, columns) in loaded.iter_mut().zip(columns) {
            *loaded = bytemuck::cast::<_, __m512i>(columns[step]);
        }
        for (all, line) in all.iter_mut().zip(lines) {
            let four = _mm512_set1_epi32(bytemuck::cast(line[step]));
            for (sum, &columns) in all.iter_mut().zip(&loaded) {
                *sum = _mm512_dpbusd_epi32(*sum, columns, four);
            }
        }
    }
    for (to, from) in sums.iter_mut().zip(all) {
        *to = bytemuck::cast(from);
    }
}

/// Two vectors less each other.
#[target_feature(enable = "avx512f")]
fn apart(values: [f32; LANES], middle: [f32; LANES]) -> __m512 {
    _mm512_sub_ps(bytemuck::cast(values), bytemuck::cast(middle))
}

/// How many whole scales there are in values, and what they leave out; a factor is 1 / scale.
#[target_feature(enable = "avx512f")]
fn divided(values: __m512, factors: __m512, scales: __m512) -> (__m512i, __m512) {
    let whole = _mm512_cvtps_epi32(_mm512_mul_ps(values, factors));
    (whole, _mm512_sub_ps(values, _mm512_mul_ps(_mm512_cvtepi32_ps(whole), scales)))
}

#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn round(values: &[f32], middle: &[f32], bytes: &mut [i8]) -> Rounded {
    let ((values, values_rest), (middle, middle_rest)) =
        (values.as_chunks::<LANES>(), middle.as_chunks::<LANES>());
    let (bytes, bytes_rest) = bytes.as_chunks_mut::<LANES>();
    // What does not fill the lanes is filled up with zeros.
    let mut last = ([0f32; LANES], [0f32; LANES]);
    last.0[..values_rest.len()].copy_from_slice(values_rest);
    last.1[..middle_rest.len()].copy_from_slice(middle_rest);
    let last = apart(last.0, last.1);
    let mut most = _mm512_abs_ps(last);
    for (&values, &middle) in values.iter().zip(middle) {
        most = _mm512_max_ps(most, _mm512_abs_ps(apart(values, middle)));
    }
    let most = _mm512_reduce_max_ps(most);
    let (scale, factor) = if most > 0.0 { (most / MOST, MOST / most) } else { (0.0, 0.0) };
    let (scales, factors) = (_mm512_set1_ps(scale), _mm512_set1_ps(factor));
    let (mut squares, mut losses) = (_mm512_setzero_ps(), _mm512_setzero_ps());
    let mut sums = _mm512_setzero_si512();
    let parts = values.iter().zip(middle).zip(bytes);
    for ((&values, &middle), bytes) in parts {
        let value = apart(values, middle);
        let (whole, lost) = divided(value, factors, scales);
        squares = _mm512_fmadd_ps(value, value, squares);
        losses = _mm512_fmadd_ps(lost, lost, losses);
        sums = _mm512_add_epi32(sums, whole);
        *bytes = bytemuck::cast(_mm512_cvtepi32_epi8(whole));
    }
    let (whole, lost) = divided(last, factors, scales);
    let rest: [i8; LANES] = bytemuck::cast(_mm512_cvtepi32_epi8(whole));
    bytes_rest.copy_from_slice(&rest[..bytes_rest.len()]);
    Rounded {
        scale,
        square: _mm512_reduce_add_ps(_mm512_fmadd_ps(last, last, squares)),
        lost: _mm512_reduce_add_ps(_mm512_fmadd_ps(lost, lost, losses)),
        sum: _mm512_reduce_add_epi32(_mm512_add_epi32(sums, whole)),
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn score(
    sums: &[i32; COLUMNS],
    by: Scores<'_>,
    (limit, bound): (f32, f32),
    scores: &mut [f32; COLUMNS],
) -> (f32, u64) {
    let (shift, factor) = (_mm512_set1_epi32(by.shift), _mm512_set1_ps(by.factor));
    let sums: &[[i32; LANES]] = sums.as_chunks().0;
    let (scales, offsets) = (by.scales.as_chunks::<LANES>().0, by.offsets.as_chunks::<LANES>().0);
    let mut all = [_mm512_setzero_ps(); VECTORS];
    let mut smallest = _mm512_set1_ps(limit - bound);
    for (at, score) in all.iter_mut().enumerate() {
        let product = _mm512_cvtepi32_ps(_mm512_sub_epi32(bytemuck::cast(sums[at]), shift));
        let scale = _mm512_mul_ps(bytemuck::cast(scales[at]), factor);
        *score = _mm512_add_ps(_mm512_mul_ps(product, scale), bytemuck::cast(offsets[at]));
        smallest = _mm512_min_ps(*score, smallest);
    }
    let limit = _mm512_reduce_min_ps(smallest) + bound;
    let within = _mm512_set1_ps(limit + bound);
    let mut near = 0;
    for (at, &score) in all.iter().enumerate() {
        near |= u64::from(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(score, within)) << (at * LANES);
    }
    if near != 0 {
        *scores = bytemuck::cast(all);
    }
    (limit, near)
}
