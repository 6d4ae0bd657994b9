"""Products by oneDNN are those of torch, whatever the shape, and so are their gradients."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from subdp.encoder import products
from subdp.encoder.products import Linear, linear, use_onednn


@pytest.mark.parametrize("shape", [(20,), (1, 20), (3, 7, 20), (2, 1, 20), (500, 20), (33, 31, 20), (0, 20)])
def test_products_and_gradients_are_those_of_torch(shape: tuple[int, ...]) -> None:
    draw = torch.Generator().manual_seed(1)
    x, weight, bias = (torch.randn(size, generator=draw, requires_grad=True) for size in (shape, (11, 20), (11,)))
    ours, theirs = linear(x, weight, bias), functional.linear(x, weight, bias)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
    back = torch.randn(theirs.shape, generator=draw)
    for one, other in zip(*(torch.autograd.grad(y, (x, weight, bias), back) for y in (ours, theirs)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-3)
    with torch.inference_mode():
        torch.testing.assert_close(linear(x, weight), functional.linear(x, weight), rtol=1e-4, atol=1e-4)


def test_a_weight_may_be_a_transposed_view() -> None:
    x, weight = torch.randn(5, 3, 4), torch.randn(4, 6)
    torch.testing.assert_close(linear(x, weight.t()), x @ weight, rtol=1e-4, atol=1e-4)


def test_no_gradient_is_computed_for_what_is_not_trained() -> None:
    x, weight = torch.randn(5, 4, requires_grad=True), torch.randn(6, 4)
    torch.autograd.backward(linear(x, weight).sum())
    assert weight.grad is None
    torch.testing.assert_close(x.grad, weight.sum(0).expand(5, 4), rtol=1e-4, atol=1e-4)


def test_what_it_returns_may_be_changed_in_place_in_training() -> None:
    x, weight = torch.randn(5, 4, requires_grad=True), torch.randn(6, 4)
    torch.autograd.backward(linear(x, weight).relu_().sum())
    assert x.grad is not None


def test_a_second_derivative_is_an_error_and_not_zero() -> None:
    x, weight = torch.randn(5, 4, requires_grad=True), torch.randn(6, 4, requires_grad=True)
    (first,) = torch.autograd.grad((linear(x, weight) ** 2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        torch.autograd.backward(first.sum())


def test_torch_has_the_operator() -> None:
    assert products._available(), "products are computed by MKL, on some processors at half the speed"


def test_few_numbers_of_rows_are_computed_and_at_most_an_eighth_of_many_is_padding() -> None:
    sizes = {rows: len(products._padded(torch.zeros(rows, 1))) for rows in range(1, 2049)}
    assert all(rows <= size < rows + max(16, rows / 8) for rows, size in sizes.items())
    assert len(set(sizes.values())) <= 48


def test_other_types_are_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_product", None)
    x, weight = torch.randn(5, 4, dtype=torch.float64), torch.randn(6, 4, dtype=torch.float64)
    assert torch.equal(linear(x, weight), functional.linear(x, weight))


def test_where_torch_has_no_onednn_it_computes_the_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_product", None)
    monkeypatch.setattr(products, "_available", lambda: False)
    x, weight = torch.randn(5, 4), torch.randn(6, 4)
    assert torch.equal(linear(x, weight), functional.linear(x, weight))


def test_the_linear_maps_of_a_module_keep_their_weights_and_stay_trainable() -> None:
    plain = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 2, bias=False)))
    ours = copy.deepcopy(plain)
    use_onednn(ours)
    assert [type(module) for module in ours.modules() if isinstance(module, nn.Linear)] == [Linear, Linear]
    assert list(ours.state_dict()) == list(plain.state_dict())
    x = torch.randn(7, 4)
    torch.testing.assert_close(ours(x), plain(x), rtol=1e-4, atol=1e-4)
    torch.autograd.backward(ours(x).sum())
    assert all(parameter.grad is not None for parameter in ours.parameters())
