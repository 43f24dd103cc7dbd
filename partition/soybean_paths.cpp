#include "partition/soybean_paths.h"

#include <algorithm>

namespace taso {
namespace {

std::string key_of(const OperatorPiece& piece) {
  std::string key = piece.op + "; " + to_string(piece.attributes);
  for (const TensorType& type : piece.inputs) key += "; " + to_string(type);
  for (const auto* boxes : {&piece.reads, &piece.makes})
    for (const IndexBox& box : *boxes)
      for (const IndexRange& range : box) key += " " + std::to_string(range.begin) + ":" + std::to_string(range.end);
  return key;
}

/// The bit of a device's number that says on which side of a cut it is.
bool is_second(std::size_t device, std::size_t cut, std::size_t cuts) { return (device >> (cuts - 1 - cut) & 1) != 0; }

std::shared_ptr<const AlignedForm> form_cutting(const OperatorPiece& piece, const std::string& variable,
                                                FormTable& forms) {
  const FormTable::Forms& known = forms.of(piece);
  const auto form =
      std::find_if(known.begin(), known.end(), [&](const auto& one) { return one->variable == variable; });
  TASO_CHECK(form != known.end(), "two halves have different forms");
  return *form;
}

}  // namespace

const FormTable::Forms& FormTable::of(const OperatorPiece& piece) {
  const auto [place, is_new] = known_.try_emplace(key_of(piece));
  if (is_new)
    for (AlignedForm& form : aligned_forms(piece, strategies_))
      place->second.push_back(std::make_shared<const AlignedForm>(std::move(form)));
  return place->second;
}

std::vector<FormPath> form_paths(const OperatorPiece& piece, std::size_t cuts, FormTable& forms,
                                 const FormFilter& allowed) {
  if (cuts == 0) return {FormPath()};
  const FormTable::Forms& all = forms.of(piece);
  const auto is_allowed = [&](const auto& form) { return !allowed || allowed(*form); };
  const bool any = std::none_of(all.begin(), all.end(), is_allowed);
  std::vector<FormPath> paths;
  for (const auto& form : all) {
    if (!any && !is_allowed(form)) continue;
    for (const FormPath& rest : form_paths(form->first, cuts - 1, forms, allowed)) {
      FormPath& path = paths.emplace_back(FormPath{form});
      path.insert(path.end(), rest.begin(), rest.end());
    }
  }
  return paths;
}

FormPath form_path(const OperatorPiece& piece, const std::vector<std::string>& variables, FormTable& forms) {
  FormPath path;
  const OperatorPiece* computed = &piece;
  for (const std::string& variable : variables) {
    path.push_back(form_cutting(*computed, variable, forms));
    computed = &path.back()->first;
  }
  return path;
}

std::vector<Tiling> tilings_of(const Shape& shape, std::size_t cuts) {
  if (cuts == 0) return {Tiling()};
  std::vector<Tiling> tilings;
  for (const BasicTiling& basic : basic_tilings(shape))
    for (const Tiling& rest : tilings_of(half_of(shape, basic), cuts - 1)) {
      Tiling& tiling = tilings.emplace_back(Tiling{basic});
      tiling.insert(tiling.end(), rest.begin(), rest.end());
    }
  return tilings;
}

std::vector<double> cut_costs(const OperatorPiece& piece, const FormPath& path, OperandPlace place,
                              const TensorType& type, const Tiling& tiling) {
  std::vector<double> costs;
  const OperatorPiece* computed = &piece;
  TensorType tile = type;
  for (std::size_t cut = 0; cut < path.size(); ++cut) {
    const AlignedForm& form = *path[cut];
    if (place.output) {
      const auto bytes = std::max(computed->outputs[place.number].bytes(), tile.bytes());
      costs.push_back(conversion_bytes(form.outputs[place.number], tiling[cut], static_cast<double>(bytes)));
    } else {
      const auto bytes = computed->inputs[place.number].bytes();
      costs.push_back(conversion_bytes(tiling[cut], form.inputs[place.number], static_cast<double>(bytes)));
    }
    tile.shape = half_of(tile.shape, tiling[cut]);
    computed = &form.first;
  }
  return costs;
}

double weighted_sum(const std::vector<double>& cut_costs) {
  double sum = 0, groups = 1;
  for (const double cost : cut_costs) {
    sum += groups * cost;
    groups *= 2;
  }
  return sum;
}

Placement placement_of(const Shape& shape, const Tiling& tiling) {
  Placement placement;
  for (std::size_t device = 0; device < std::size_t{1} << tiling.size(); ++device) {
    IndexBox box = whole_box(shape);
    for (std::size_t cut = 0; cut < tiling.size(); ++cut) {
      if (tiling[cut].kind != BasicTiling::Kind::cut) continue;
      IndexRange& range = box[tiling[cut].axis];
      const std::int64_t half = range.size() / 2;
      (is_second(device, cut, tiling.size()) ? range.begin : range.end) = range.begin + half;
    }
    placement.boxes.push_back(std::move(box));
  }
  return placement;
}

Placement placement_of(const OperatorPiece& piece, const FormPath& path, OperandPlace place, FormTable& forms) {
  Placement placement;
  for (std::size_t cut = 0; place.output && cut < path.size(); ++cut)
    if (path[cut]->outputs[place.number].kind == BasicTiling::Kind::reduced) {
      placement.partial.push_back(cut);
      placement.reducer = "sum";  // which reducer it is does not matter for what moves
    }
  for (std::size_t device = 0; device < std::size_t{1} << path.size(); ++device) {
    const OperatorPiece* computed = &piece;
    for (std::size_t cut = 0; cut < path.size(); ++cut) {
      const auto form = form_cutting(*computed, path[cut]->variable, forms);
      computed = is_second(device, cut, path.size()) ? &form->second : &form->first;
    }
    placement.boxes.push_back((place.output ? computed->makes : computed->reads)[place.number]);
  }
  return placement;
}

Mesh binary_mesh(std::size_t cuts) {
  Mesh mesh;
  mesh.axes.assign(cuts, {2, "link", 1, 0});
  return mesh;
}

}  // namespace taso
