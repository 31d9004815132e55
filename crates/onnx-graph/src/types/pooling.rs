//! Windows that slide over the spatial axes: pooling, and the arithmetic that convolutions share with it.

use crate::{Dim, ElementType};

use super::{
    dims::{ONE, size},
    op::{Op, Value},
};

/// How windows lie over the spatial axes, by the attributes of pooling and convolution.
#[derive(Debug)]
pub(super) struct Windows<'m> {
    strides: Option<&'m [i64]>,
    dilations: Option<&'m [i64]>,
    pads: Option<&'m [i64]>,
    auto_pad: &'m str,
    ceil: bool,
}

impl<'m> Windows<'m> {
    pub(super) fn of(op: &Op<'_, 'm>) -> Self {
        Self {
            strides: op.ints("strides"),
            dilations: op.ints("dilations"),
            pads: op.ints("pads"),
            auto_pad: op.text("auto_pad").unwrap_or("NOTSET"),
            ceil: op.flag("ceil_mode"),
        }
    }

    /// Stride, dilation and the pads before and after along the spatial axis `i` of `axes`; stride and dilation are positive.
    pub(super) fn along(&self, i: usize, axes: usize) -> Option<[i128; 4]> {
        let at = |list: Option<&[i64]>, i: usize, default: i64| match list {
            None | Some([]) => Some(i128::from(default)),
            Some(list) => list.get(i).map(|v| i128::from(*v)),
        };
        let (stride, dilation) = (at(self.strides, i, 1)?, at(self.dilations, i, 1)?);
        let pads = if self.auto_pad == "VALID" { None } else { self.pads };
        let (before, after) = (at(pads, i, 0)?, at(pads, i.checked_add(axes)?, 0)?);
        (stride > 0 && dilation > 0).then_some([stride, dilation, before, after])
    }

    pub(super) fn same(&self) -> bool {
        self.auto_pad.starts_with("SAME")
    }

    /// Number of windows of `kernel` elements along a spatial axis.
    pub(super) fn count(&self, i: usize, axes: usize, dim: &Dim, kernel: i64) -> Option<Dim> {
        let [stride, dilation, before, after] = self.along(i, axes)?;
        let beyond = dilation.checked_mul(i128::from(kernel).checked_sub(1)?)?;
        let unchanged = stride == 1 && (self.same() && dilation == 1 || before + after == beyond);
        let Dim::Static(dim) = dim else {
            return Some(if unchanged { dim.clone() } else { Dim::Unknown });
        };
        let dim = i128::from(*dim);
        if self.same() {
            // With dilation, engines do not follow the formula.
            return Some(if dilation == 1 { size((dim + stride - 1) / stride) } else { Dim::Unknown });
        }
        let room = dim + before + after - beyond - 1;
        if room < 0 || kernel < 1 {
            return None;
        }
        let windows = room / stride + 1;
        // A partial window counts where it starts within the data or the pad in front of it.
        let partial = self.ceil && room % stride > 0 && windows * stride < dim + before;
        Some(size(windows + i128::from(partial)))
    }
}

/// `MaxPool`, `AveragePool` and `LpPool`; the first gives indices as well.
pub(super) fn pool(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let kernel = op.ints("kernel_shape")?;
    let windows = Windows::of(op);
    let along = |(i, dim): (usize, &Dim)| match i.checked_sub(2) {
        None => dim.clone(),
        Some(i) => {
            let count = kernel.get(i).and_then(|k| windows.count(i, kernel.len(), dim, *k));
            count.unwrap_or(Dim::Unknown)
        }
    };
    let shape = op.dims(0).map(|dims| dims.iter().enumerate().map(along).collect());
    Some(vec![Value::new(op.element(0), shape.clone()), Value::new(ElementType::Int64, shape)])
}

pub(super) fn global(op: &Op<'_, '_>) -> Option<Vec<Value>> {
    let mut value = op.like(0);
    value.shape.iter_mut().flatten().skip(2).for_each(|dim| *dim = ONE);
    Some(vec![value])
}
