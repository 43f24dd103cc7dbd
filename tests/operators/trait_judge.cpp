#include "tests/operators/trait_judge.h"

#include <algorithm>
#include <cmath>

#include "tests/support/shipped.h"

namespace taso::test {
namespace {

constexpr int styles = 4;

/// Whether two numbers differ by more than rounding; of infinities and NaN nothing is said.
bool differs(double a, double b, double magnitude) {
  return std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) > 1e-9 * (1 + magnitude);
}

bool exceeds(double a, double b) { return a > b && differs(a, b, std::max(std::fabs(a), std::fabs(b))); }

}  // namespace

TraitJudge::TraitJudge(const OperatorRegistry& registry, const std::string& op, const Attributes& attributes,
                       std::vector<TensorType> types, std::uint64_t seed)
    : definition_(*registry.find(op)),
      instance_(value_of(OperatorInstance::create(registry, op, attributes, types))),
      bounds_(registry.index_bounds(op, attributes, types)),
      random_(seed) {}

std::size_t TraitJudge::input_of(std::size_t tensor) const { return definition_.variadic() ? 0 : tensor; }

TraitJudge::Tensors TraitJudge::draw(int style) {
  Tensors tensors;
  for (std::size_t i = 0; i < instance_.input_types().size(); ++i) {
    const TensorType& type = instance_.input_types()[i];
    RingTensor<double> tensor{type.shape, {}, {}};
    for (std::int64_t k = 0; k < type.elements(); ++k) {
      if (definition_.inputs[input_of(i)].integers()) {
        tensor.integers.push_back(
            static_cast<std::int64_t>(bounds_[i] == 0 ? 0 : random_.below(static_cast<std::uint64_t>(bounds_[i]))));
        continue;
      }
      switch (style) {
        case 0:
          tensor.elements.push_back(0.25 + 2 * random_.uniform());
          break;
        case 1:
          tensor.elements.push_back(4 * random_.uniform() - 2);
          break;
        case 2:
          tensor.elements.push_back(-0.25 - 2 * random_.uniform());
          break;
        default:
          tensor.elements.push_back(12 * random_.uniform() - 6);
      }
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::optional<std::vector<double>> TraitJudge::evaluate_at(const Tensors& tensors) const {
  std::vector<const RingTensor<double>*> pointers;
  pointers.reserve(tensors.size());
  for (const RingTensor<double>& tensor : tensors) pointers.push_back(&tensor);
  DoubleRing ring;
  const auto outputs = evaluate(instance_, ring, std::span<const RingTensor<double>* const>(pointers));
  if (!outputs) return std::nullopt;
  std::vector<double> elements;
  for (const RingTensor<double>& output : *outputs)
    elements.insert(elements.end(), output.elements.begin(), output.elements.end());
  return elements;
}

Dependence TraitJudge::not_refuted(std::span<const std::size_t> inputs, int rounds) {
  Dependence left{true, true, true, true, true};
  for (int round = 0; round < rounds; ++round) {
    const Tensors x = draw(round % styles), other = draw(round % styles);
    const double t = random_.uniform(), a = 2 * random_.uniform(), b = 2 * random_.uniform();
    Tensors y = x, combined = x, mean = x, larger = x;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::find(inputs.begin(), inputs.end(), input_of(i)) == inputs.end()) continue;
      y[i] = other[i];
      for (std::size_t k = 0; k < x[i].elements.size(); ++k) {
        const double p = x[i].elements[k], q = y[i].elements[k];
        combined[i].elements[k] = a * p + b * q;
        mean[i].elements[k] = (1 - t) * p + t * q;
        larger[i].elements[k] = std::max(p, q);
      }
      for (std::size_t k = 0; k < x[i].integers.size(); ++k)
        for (Tensors* tensors : {&combined, &mean, &larger}) (*tensors)[i].integers[k] = y[i].integers[k];
    }
    const auto of_x = evaluate_at(x), of_y = evaluate_at(y), of_combined = evaluate_at(combined),
               of_mean = evaluate_at(mean), of_larger = evaluate_at(larger);
    if (!of_x || !of_y || !of_combined || !of_mean || !of_larger) continue;
    for (std::size_t k = 0; k < of_x->size(); ++k) {
      const double fx = (*of_x)[k], fy = (*of_y)[k], magnitude = std::max(std::fabs(fx), std::fabs(fy));
      if (differs((*of_combined)[k], a * fx + b * fy, magnitude)) left.linear = false;
      if (differs((*of_mean)[k], (1 - t) * fx + t * fy, magnitude)) left.affine = false;
      for (const double f : {fx, fy}) {
        if (exceeds(f, (*of_larger)[k])) left.nondecreasing = false;
        if (exceeds((*of_larger)[k], f)) left.nonincreasing = false;
      }
      if (differs((*of_larger)[k], std::max(fx, fy), magnitude)) left.preserves_maxima = false;
    }
  }
  return left;
}

bool TraitJudge::refutes(std::size_t tensor, Injectivity claim, int rounds) {
  if (claim == Injectivity::none || instance_.input_types()[tensor].elements() == 0) return false;
  for (int round = 0; round < rounds; ++round) {
    Tensors x = draw(round % styles);
    // Small numbers: in doubles tanh is no injective function of large ones.
    for (RingTensor<double>& some : x)
      for (double& element : some.elements) element /= 8;
    Tensors y = x;
    std::vector<double>& elements = y[tensor].elements;
    const double difference = 0.1 + random_.uniform() / 8;
    // All elements shifted, one element the other way round, or shifted.
    if (claim == Injectivity::injective && round % 3 == 0)
      for (double& element : elements) element += difference;
    else if (double& element = elements[random_.below(elements.size())]; round % 3 == 1)
      element = -element;
    else
      element += difference;
    const auto of_x = evaluate_at(x), of_y = evaluate_at(y);
    if (!of_x || !of_y) continue;
    bool equal = true;
    for (std::size_t k = 0; k < of_x->size(); ++k) {
      const double p = (*of_x)[k], q = (*of_y)[k];
      // What is not finite says nothing.
      equal = equal && std::isfinite(p) && std::isfinite(q) && std::fabs(p - q) <= 1e-13 * std::fabs(p);
    }
    if (equal) return true;
  }
  return false;
}

}  // namespace taso::test
