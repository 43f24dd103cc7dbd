#include "runtime/layout_space.h"

#include <algorithm>
#include <functional>

#include "runtime/strides.h"
#include "support/reversed.h"

namespace taso {
namespace {

using Kind = Configuration::Kind;

/// A set of layouts.
using Mask = std::uint8_t;
constexpr Mask bit(Layout layout) { return static_cast<Mask>(1U << static_cast<unsigned>(layout)); }
constexpr std::array<Layout, layout_count> all_layouts = {
    Layout::row_major,     Layout::channels_last, Layout::column_major, Layout::rows_outer,
    Layout::columns_outer, Layout::blocks_of_8,   Layout::blocks_of_16};
/// Those that are an order of axes.
constexpr std::array<Layout, 5> orders = {Layout::row_major, Layout::channels_last, Layout::column_major,
                                          Layout::rows_outer, Layout::columns_outer};

/// What is known of a node's input when its configurations are made.
struct Input {
  const TensorType* type = nullptr;
  bool weight = false;
  Mask available = 0;  ///< Layouts in which it may be there, besides row_major.
};

/// What the readers of a node's outputs would like.
struct Wishes {
  Mask transposed = 0;    ///< Of a product: layouts in which a transpose behind it is a view of rows.
  bool images = false;    ///< A convolution or pooling reads output 0.
  bool piece = false;     ///< Output 0 may become a piece of a concatenation.
  bool in_place = false;  ///< Of a concatenation: its operands may be pieces.
};

bool is_full_view(const Node& node) {
  return node.inputs.size() == 1 && node.outputs.size() == 1 &&
         (node.op == "reshape" || node.op == "broadcast" || node.op == "transpose");
}

}  // namespace

struct LayoutSpaces::Builder {
  LayoutSpaces& owner;
  const Graph& graph;
  LayoutSpace space;

  /// Per output of each node.
  struct Slot {
    Mask available = 0;
    Wishes wishes;
    bool used = false, output = false;   ///< `output`: read as rows by an output or an opaque node.
    std::vector<std::uint32_t> readers;  ///< Variables, ascending.
  };
  std::vector<std::uint32_t> first_slot, variable_of;  ///< Per node.
  std::vector<Slot> slots;
  std::unordered_map<const PlannedKernel*, LayoutSpace::Code> codes;

  Slot& slot(Value value) { return slots[first_slot[value.node] + value.port]; }

  Value operand_of(const Node& node, const Behaviour& traits, std::size_t i) const {
    Value value = node.inputs[i];
    while (traits.folds_broadcast) {
      const Node& producer = graph.node(value.node);
      if (!producer.is_op("broadcast") || producer.inputs.size() != 1) break;
      value = producer.inputs[0];
    }
    return value;
  }

  LayoutSpace::Code code_of(const std::shared_ptr<const PlannedKernel>& kernel) {
    if (!kernel) return LayoutSpace::nothing;
    const auto [place, fresh] =
        codes.emplace(kernel.get(), LayoutSpace::first_kernel + static_cast<LayoutSpace::Code>(space.kernels.size()));
    if (fresh) space.kernels.push_back(kernel);
    return place->second;
  }

  Status unknown(NodeId id) const {
    const Node& node = graph.node(id);
    return bad_input("the shape of a tensor of node " + std::to_string(id) + " (" +
                     (node.op.empty() ? "input '" + node.name + "'" : node.op) + ") is not known");
  }

  /// Marks what is read, and by whom, from the outputs up.
  Status note_readers(const std::vector<NodeId>& order) {
    for (const Value& output : graph.outputs()) {
      if (!graph.type(output).known || graph.node(output.node).weight_only) continue;
      slot(output).used = slot(output).output = true;
    }
    for (std::size_t at = order.size(); at-- > 0;) {
      const NodeId id = order[at];
      const Node& node = graph.node(id);
      if (node.kind == NodeKind::opaque) {
        for (const Value& input : node.inputs)
          if (graph.type(input).known && !graph.node(input.node).weight_only)
            slot(input).used = slot(input).output = true;
        continue;
      }
      if (node.kind != NodeKind::op || node.weight_only) continue;
      bool used = false;
      for (std::uint32_t port = 0; port < node.outputs.size(); ++port) used = used || slot({id, port}).used;
      if (!used) continue;
      for (const TensorType& type : node.outputs)
        if (!type.known) return unknown(id);
      const Behaviour& traits = behaviour_of(node.op);
      Wishes& own = slot({id, 0}).wishes;
      if (traits.view == ViewKind::concat) own.in_place = can_be_in_place(node);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const Value value = operand_of(node, traits, i);
        if (graph.node(value.node).weight_only) continue;
        const TensorType& type = graph.type(value);
        if (!type.known) return unknown(value.node);
        Slot& source = slot(value);
        source.used = true;
        if (traits.habit == Habit::spatial && traits.is_image(i) && can_be_channels_last(type)) {
          if (canonical(type.shape, Layout::channels_last) == Layout::channels_last) {
            source.wishes.images = true;
            source.available |= bit(Layout::channels_last);
          }
          if (owner.blocks_ && fits(*owner.blocks_, type.shape))
            source.available |= bit(canonical(type.shape, *owner.blocks_));
        }
        if (own.in_place || (is_full_view(node) && own.piece)) source.wishes.piece = true;
        if (traits.view == ViewKind::transpose)
          for (const Layout from : orders)
            if (from != Layout::channels_last && fits(from, type.shape) && canonical(type.shape, from) == from &&
                transpose_moves_nothing(node, type, from, Layout::row_major))
              source.wishes.transposed |= bit(from);
      }
    }
    return {};
  }

  bool can_be_in_place(const Node& node) const {
    const TensorType& type = node.outputs[0];
    const std::size_t axis = axis_of(node.attributes.integer("axis"), type.shape.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (graph.node(node.inputs[i].node).weight_only) return false;
      for (std::size_t j = 0; j < i; ++j)
        if (node.inputs[i] == node.inputs[j]) return false;
    }
    return std::any_of(all_layouts.begin(), all_layouts.end(), [&](Layout layout) {
      return fits(layout, type.shape) && is_outermost(type.shape, layout, axis);
    });
  }

  // ---- Configurations of one node.

  std::shared_ptr<const Configuration> kernel_choice(const Node& node, std::span<const Input> in,
                                                     std::vector<Layout> inputs, std::vector<Layout> outputs) {
    std::vector<Operand> operands;
    for (std::size_t i = 0; i < in.size(); ++i) operands.push_back({*in[i].type, inputs[i], in[i].weight});
    auto made = std::make_shared<Configuration>();
    made->kernel = owner.kernels_.of_node(node, operands, outputs);
    made->inputs = std::move(inputs);
    made->outputs = std::move(outputs);
    return made;
  }

  /// A view, and one that claims its input if its output may become a piece of a concatenation.
  void add_view(Choices& choices, const Node& node, Layout from, Layout to, std::vector<std::int64_t> offsets,
                bool piece) {
    Configuration view;
    view.kind = Kind::view;
    view.inputs = {from};
    view.outputs.assign(node.outputs.size(), to);
    view.offsets = std::move(offsets);
    choices.push_back(std::make_shared<const Configuration>(view));
    if (!piece) return;
    view.claims = true;
    choices.push_back(std::make_shared<const Configuration>(std::move(view)));
  }

  /// Layouts of a follower besides row_major: those its operands may be there in.
  static std::vector<Layout> follower_layouts(const Node& node, const Behaviour& traits, std::span<const Input> in) {
    std::vector<Layout> layouts = {Layout::row_major};
    const std::size_t rank = node.outputs[0].shape.size();
    Mask available = 0;
    for (const Input& input : in)
      if (!input.weight && input.type->shape.size() == rank) available |= input.available;
    for (const Layout layout : all_layouts) {
      if (layout == Layout::row_major || (available & bit(layout)) == 0) continue;
      const bool blocks = block_of(layout) != 0;
      if (blocks ? !traits.blocks : layout != Layout::channels_last && !traits.any_order) continue;
      const auto possible = [&](const TensorType& type) {
        return type.element == ElementType::f32 && type.shape.size() == rank && fits(layout, type.shape);
      };
      if (!std::all_of(node.outputs.begin(), node.outputs.end(), possible)) continue;
      // Of a concatenation and a split, every piece is whole blocks.
      if (blocks && traits.view != ViewKind::none &&
          !std::all_of(in.begin(), in.end(), [&](const Input& input) { return possible(*input.type); }))
        continue;
      layouts.push_back(layout);
    }
    return layouts;
  }

  Choices make_choices(const Node& node, const Behaviour& traits, std::span<const Input> in, const Wishes& wishes) {
    Choices choices;
    const auto all = [&](Layout layout) { return std::vector<Layout>(node.outputs.size(), layout); };
    const std::vector<Layout> rows(in.size(), Layout::row_major);
    // Images in one layout, all else rows.
    const auto images_in = [&](Layout layout) {
      std::vector<Layout> inputs = rows;
      for (std::size_t i = 0; i < in.size(); ++i)
        if (traits.is_image(i)) inputs[i] = layout;
      choices.push_back(kernel_choice(node, in, std::move(inputs), all(layout)));
    };
    switch (traits.view) {
      case ViewKind::reshape:
        add_view(choices, node, Layout::row_major, Layout::row_major, {0}, wishes.piece);
        if (*in[0].type == node.outputs[0])
          for (const Layout layout : all_layouts)
            if (layout != Layout::row_major && (in[0].available & bit(layout)) != 0)
              add_view(choices, node, layout, layout, {0}, wishes.piece);
        return choices;
      case ViewKind::broadcast:
        if (in[0].type->elements() != node.outputs[0].elements()) break;
        add_view(choices, node, Layout::row_major, Layout::row_major, {0}, wishes.piece);
        return choices;
      case ViewKind::transpose:
        return transposes(node, in, wishes);
      case ViewKind::none:
      case ViewKind::split:
      case ViewKind::slice:
      case ViewKind::concat:
        break;
    }
    switch (traits.habit) {
      case Habit::row:
        choices.push_back(kernel_choice(node, in, rows, all(Layout::row_major)));
        break;
      case Habit::spatial:
        if (can_be_channels_last(node.outputs[0])) images_in(Layout::channels_last);
        images_in(Layout::row_major);
        if (owner.blocks_ && can_be_blocked(node, in)) {
          // A first convolution reads three channels as rows.
          std::vector<Layout> inputs = rows;
          for (std::size_t i = 0; i < in.size(); ++i)
            if (traits.is_image(i) && fits(*owner.blocks_, in[i].type->shape)) inputs[i] = *owner.blocks_;
          choices.push_back(kernel_choice(node, in, std::move(inputs), all(*owner.blocks_)));
        }
        break;
      case Habit::channel:
        images_in(Layout::row_major);
        if (can_be_channels_last(*in[0].type) && (in[0].available & bit(Layout::channels_last)) != 0)
          images_in(Layout::channels_last);
        break;
      case Habit::follower:
        for (const Layout layout : follower_layouts(node, traits, in))
          follow(choices, node, traits, in, wishes, layout);
        break;
      case Habit::product:
        products(choices, node, in, wishes);
        break;
    }
    return choices;
  }

  /// Whether there are fast kernels with the result in blocks of channels: groups are whole blocks or single channels,
  /// and poolings are not dilated.
  bool can_be_blocked(const Node& node, std::span<const Input> in) const {
    const Shape& x = in[0].type->shape;
    const Shape& y = node.outputs[0].shape;
    const std::int64_t block = block_of(*owner.blocks_);
    if (!can_be_channels_last(node.outputs[0]) || !fits(*owner.blocks_, y)) return false;
    if (in.size() == 1) {
      const AttributeValue* dilations = node.attributes.find("dilations");
      return fits(*owner.blocks_, x) && (dilations == nullptr || std::get<std::vector<std::int64_t>>(*dilations) ==
                                                                     std::vector<std::int64_t>{1, 1});
    }
    const Shape& k = in[1].type->shape;
    const std::int64_t groups = k[1] == 0 ? 0 : x[1] / k[1];
    if (groups == 1) return true;
    if (!fits(*owner.blocks_, x)) return false;
    return groups == x[1] ? y[1] == x[1] : groups > 0 && k[1] % block == 0 && (y[1] / groups) % block == 0;
  }

  void follow(Choices& choices, const Node& node, const Behaviour& traits, std::span<const Input> in,
              const Wishes& wishes, Layout layout) {
    const std::size_t rank = node.outputs[0].shape.size();
    std::vector<Layout> inputs;
    for (const Input& input : in) {
      const bool follows =
          input.type->shape.size() == rank && input.type->element == ElementType::f32 &&
          (block_of(layout) == 0 || traits.view != ViewKind::none || input.type->shape == node.outputs[0].shape);
      inputs.push_back(follows ? layout : Layout::row_major);
    }
    std::optional<std::vector<std::int64_t>> offsets;
    if (traits.view == ViewKind::split) offsets = split_offsets(node, *in[0].type, layout);
    if (traits.view == ViewKind::slice) offsets = slice_offsets(node, *in[0].type, layout);
    if (offsets) {
      add_view(choices, node, layout, layout, std::move(*offsets), false);
      return;
    }
    const std::vector<Layout> outputs(node.outputs.size(), layout);
    if (traits.view == ViewKind::concat && wishes.in_place &&
        is_outermost(node.outputs[0].shape, layout, axis_of(node.attributes.integer("axis"), rank))) {
      auto made = std::make_shared<Configuration>();
      made->kind = Kind::in_place;
      made->inputs = inputs;
      made->outputs = outputs;
      choices.push_back(std::move(made));
    }
    choices.push_back(kernel_choice(node, in, std::move(inputs), outputs));
  }

  Choices transposes(const Node& node, std::span<const Input> in, const Wishes& wishes) {
    Choices choices;
    const TensorType& output = node.outputs[0];
    for (const Layout from : orders) {
      if (from != Layout::row_major && (in[0].available & bit(from)) == 0) continue;
      bool simple = false;  // a view in a layout that every reader knows
      for (const Layout to : orders) {
        if (!fits(to, output.shape) || canonical(output.shape, to) != to) continue;
        if (to != Layout::row_major && output.element != ElementType::f32) continue;
        if (!transpose_moves_nothing(node, *in[0].type, from, to)) continue;
        add_view(choices, node, from, to, {0}, wishes.piece);
        simple = simple || to == Layout::row_major || to == Layout::channels_last;
      }
      if (simple) continue;
      choices.push_back(kernel_choice(node, in, {from}, {Layout::row_major}));
      if (wishes.images && can_be_channels_last(output))
        choices.push_back(kernel_choice(node, in, {from}, {Layout::channels_last}));
    }
    return choices;
  }

  void products(Choices& choices, const Node& node, std::span<const Input> in, const Wishes& wishes) {
    constexpr Mask matrices = bit(Layout::column_major) | bit(Layout::rows_outer) | bit(Layout::columns_outer);
    std::vector<std::vector<Layout>> options(3, {Layout::row_major});
    const bool floats = node.outputs[0].element == ElementType::f32;
    for (std::size_t i = 0; i < 2 && floats; ++i)
      for (const Layout layout : all_layouts)
        if (!in[i].weight && (in[i].available & matrices & bit(layout)) != 0) options[i].push_back(layout);
    for (const Layout layout : all_layouts)
      if (floats && (wishes.transposed & matrices & bit(layout)) != 0) options[2].push_back(layout);
    for (const Layout a : options[0])
      for (const Layout b : options[1])
        for (const Layout y : options[2]) {
          std::vector<Layout> inputs(in.size(), Layout::row_major);
          inputs[0] = a;
          inputs[1] = b;
          choices.push_back(kernel_choice(node, in, std::move(inputs), {y}));
        }
  }

  // ---- Variables and factors.

  void add_variable(NodeId id, const Node& node) {
    const Behaviour& traits = behaviour_of(node.op);
    const Wishes wishes = slot({id, 0}).wishes;
    Mixer mixer;
    mixer.add(node.label);
    std::vector<Input> in;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value value = operand_of(node, traits, i);
      const bool weight = graph.node(value.node).weight_only;
      in.push_back({&graph.type(value), weight, weight ? Mask{0} : slot(value).available});
      mixer.add(*in.back().type);
      mixer.add((static_cast<std::uint64_t>(in.back().available) << 1) | (weight ? 1 : 0));
    }
    mixer.add((static_cast<std::uint64_t>(wishes.transposed) << 3) | (wishes.images ? 4U : 0U) |
              (wishes.piece ? 2U : 0U) | (wishes.in_place ? 1U : 0U));
    auto& known = owner.choices_[mixer.finish()];
    if (!known) known = std::make_shared<const Choices>(make_choices(node, traits, in, wishes));
    const auto variable = static_cast<std::uint32_t>(space.variables.size());
    variable_of[id] = variable;
    space.variables.push_back({id, *known});
    LayoutSpace::Factor cost{variable, variable, id, {}};
    bool free = true;
    for (const auto& choice : *known) {
      cost.table.push_back(code_of(choice->kernel));
      free = free && cost.table.back() == LayoutSpace::nothing;
      for (std::uint32_t port = 0; port < node.outputs.size(); ++port)
        slot({id, port}).available |= bit(canonical(node.outputs[port].shape, choice->outputs[port]));
    }
    if (!free) space.factors.push_back(std::move(cost));
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value value = operand_of(node, traits, i);
      if (graph.node(value.node).weight_only) continue;
      std::vector<std::uint32_t>& readers = slot(value).readers;
      if (readers.empty() || readers.back() != variable) readers.push_back(variable);
    }
  }

  void add_source(NodeId id) {
    variable_of[id] = static_cast<std::uint32_t>(space.variables.size());
    space.variables.push_back({id, {nullptr}});
  }

  /// A reader of a value: per choice, the layouts it wants, and the one it claims the value in.
  struct Reader {
    std::uint32_t variable = 0;
    std::vector<Mask> wants, claims;
    bool claims_any = false;
  };

  Reader reader_of(std::uint32_t variable, Value value, const Shape& shape) const {
    Reader reader{variable, {}, {}, false};
    const Node& node = graph.node(space.variables[variable].node);
    const Behaviour& traits = behaviour_of(node.op);
    for (const auto& choice : space.variables[variable].choices) {
      Mask wants = 0;
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (operand_of(node, traits, i) == value) wants |= bit(canonical(shape, choice->inputs[i]));
      reader.wants.push_back(wants);
      const bool claims = choice->claims || choice->kind == Kind::in_place;
      reader.claims.push_back(claims ? wants : Mask{0});
      reader.claims_any = reader.claims_any || claims;
    }
    return reader;
  }

  /// Conversions of a value, and who may make it a piece of a concatenation.
  void connect(Value value) {
    const Slot& at = slot(value);
    const TensorType& type = graph.type(value);
    const std::uint32_t producer = variable_of[value.node];
    const auto& made = space.variables[producer].choices;
    std::vector<Layout> natives;
    for (const auto& choice : made)
      natives.push_back(choice ? canonical(type.shape, choice->outputs[value.port]) : Layout::row_major);
    std::vector<Reader> readers;
    for (const std::uint32_t variable : at.readers) readers.push_back(reader_of(variable, value, type.shape));
    for (std::size_t i = 0; i < readers.size(); ++i) {
      if (!readers[i].claims_any) continue;
      const auto whole = [&](std::size_t choice) {  // what it made is a kernel's output
        return made[choice] && (made[choice]->kind == Kind::kernel || made[choice]->claims);
      };
      add_pair(producer, readers[i].variable, value.node, [&](std::size_t p, std::size_t c) {
        return (readers[i].claims[c] & bit(natives[p])) != 0 && !whole(p) ? LayoutSpace::impossible
                                                                          : LayoutSpace::nothing;
      });
    }
    // Last: what follows adds variables, which moves `made`.
    for (const Layout layout : all_layouts) claim_once(readers, value.node, layout);
    for (const Layout layout : all_layouts) convert(value, type, producer, natives, readers, at.output, layout);
  }

  void convert(Value value, const TensorType& type, std::uint32_t producer, const std::vector<Layout>& natives,
               const std::vector<Reader>& readers, bool output, Layout layout) {
    bool always = output && layout == Layout::row_major;
    std::vector<const Reader*> some;
    for (const Reader& reader : readers) {
      const auto count = std::count_if(reader.wants.begin(), reader.wants.end(),
                                       [&](Mask wants) { return (wants & bit(layout)) != 0; });
      always = always || count == static_cast<std::ptrdiff_t>(reader.wants.size());
      if (count > 0) some.push_back(&reader);
    }
    if (!always && some.empty()) return;
    if (std::all_of(natives.begin(), natives.end(), [&](Layout native) { return native == layout; })) return;
    std::vector<LayoutSpace::Code> conversion;
    for (const Layout native : natives)
      conversion.push_back(native == layout ? LayoutSpace::nothing
                                            : code_of(owner.kernels_.reorder(type, native, layout)));
    if (always) {
      space.factors.push_back({producer, producer, value.node, std::move(conversion)});
    } else if (some.size() == 1) {
      add_pair(producer, some[0]->variable, value.node, [&](std::size_t p, std::size_t c) {
        return (some[0]->wants[c] & bit(layout)) != 0 ? conversion[p] : LayoutSpace::nothing;
      });
    } else {
      std::vector<Demand> demands;
      for (const Reader* reader : some) {
        demands.push_back({reader->variable, {}});
        for (const Mask wants : reader->wants) demands.back().choices.push_back((wants & bit(layout)) != 0 ? 1 : 0);
      }
      add_pair(producer, wanted(demands, value.node), value.node,
               [&](std::size_t p, std::size_t there) { return there != 0 ? conversion[p] : LayoutSpace::nothing; });
    }
  }

  /// The choices of a reader that ask for something: a form of a value, or the value as a piece.
  struct Demand {
    std::uint32_t variable = 0;
    std::vector<char> choices;
  };

  /// A set of demands, as ascending numbers of them, and the variable "one of them is asked for".
  struct Asked {
    std::vector<std::uint32_t> demands;
    std::uint32_t flag = 0;
  };

  /// Sets of demands by their members. There is one variable for a set, and where a set holds another one, its variable
  /// follows from that one's: for the nested sets of a dense block, each has a few neighbours instead of all readers.
  struct AskedSets {
    std::vector<Asked> sets;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> of_demand;  ///< Sets that hold a demand, ascending.

    void add(std::vector<std::uint32_t> demands, std::uint32_t flag) {
      for (const std::uint32_t demand : demands) of_demand[demand].push_back(static_cast<std::uint32_t>(sets.size()));
      sets.push_back({std::move(demands), flag});
    }

    /// The largest known set of at least two that `demands` holds, the last one of them; null if there is none.
    [[nodiscard]] const Asked* largest_in(const std::vector<std::uint32_t>& demands) const {
      const Asked* best = nullptr;
      std::unordered_map<std::uint32_t, std::size_t> common;
      for (const std::uint32_t demand : demands)
        if (const auto known = of_demand.find(demand); known != of_demand.end())
          for (const std::uint32_t set : known->second)
            if (++common[set] == sets[set].demands.size() && sets[set].demands.size() >= 2 &&
                (best == nullptr || sets[set].demands.size() > best->demands.size() ||
                 (sets[set].demands.size() == best->demands.size() && &sets[set] > best)))
              best = &sets[set];
      return best;
    }
  };

  AskedSets forms;    ///< Readers that ask for a form.
  AskedSets claimed;  ///< Readers that ask for a piece; at most one of a set does.
  std::unordered_map<Hash128, std::uint32_t> demand_numbers;
  std::vector<Demand> demands_by_number;

  /// Its number: equal demands have one.
  std::uint32_t number_of(const Demand& demand) {
    Mixer mixer;
    mixer.add(demand.variable);
    for (const char asks : demand.choices) mixer.add(static_cast<std::uint64_t>(asks));
    const auto [place, fresh] =
        demand_numbers.emplace(mixer.finish(), static_cast<std::uint32_t>(demands_by_number.size()));
    if (fresh) demands_by_number.push_back(demand);
    return place->second;
  }

  std::vector<std::uint32_t> numbers_of(const std::vector<Demand>& demands) {
    std::vector<std::uint32_t> numbers;
    for (const Demand& demand : demands) numbers.push_back(number_of(demand));
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }

  static std::vector<std::uint32_t> without(const std::vector<std::uint32_t>& all,
                                            const std::vector<std::uint32_t>& some) {
    std::vector<std::uint32_t> rest;
    std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(rest));
    return rest;
  }

  std::uint32_t add_flag(NodeId node) {
    space.variables.push_back({node, {}});
    return static_cast<std::uint32_t>(space.variables.size() - 1);
  }

  /// `flag` is set where a choice of the demand asks.
  void imply(const Demand& demand, std::uint32_t flag, NodeId node) {
    add_pair(flag, demand.variable, node, [&](std::size_t there, std::size_t c) {
      return there == 0 && demand.choices[c] != 0 ? LayoutSpace::impossible : LayoutSpace::nothing;
    });
  }

  /// `flag` is set where `part` is.
  void imply(std::uint32_t part, std::uint32_t flag, NodeId node) {
    add_pair(part, flag, node, [](std::size_t some, std::size_t there) {
      return some != 0 && there == 0 ? LayoutSpace::impossible : LayoutSpace::nothing;
    });
  }

  /// The variable of a form with these readers: set where one of them asks for it.
  std::uint32_t wanted(const std::vector<Demand>& demands, NodeId node) {
    std::vector<std::uint32_t> numbers = numbers_of(demands);
    const Asked* part = forms.largest_in(numbers);
    if (part != nullptr && part->demands.size() == numbers.size()) return part->flag;
    const std::uint32_t flag = add_flag(node);
    std::vector<std::uint32_t> rest = numbers;
    for (; part != nullptr; part = forms.largest_in(rest)) {
      imply(part->flag, flag, node);
      rest = without(rest, part->demands);
    }
    for (const std::uint32_t number : rest) imply(demands_by_number[number], flag, node);
    forms.add(std::move(numbers), flag);
    return flag;
  }

  /// At most one reader makes the value a piece of its output.
  void claim_once(const std::vector<Reader>& readers, NodeId node, Layout layout) {
    std::vector<Demand> demands;
    for (const Reader& reader : readers) {
      if (std::none_of(reader.claims.begin(), reader.claims.end(), [&](Mask m) { return (m & bit(layout)) != 0; }))
        continue;
      demands.push_back({reader.variable, {}});
      for (const Mask claims : reader.claims) demands.back().choices.push_back((claims & bit(layout)) != 0 ? 1 : 0);
    }
    if (demands.size() < 2) return;
    const auto excludes = [&](std::uint32_t number, std::uint32_t flag) {
      const std::vector<char>& choices = demands_by_number[number].choices;
      add_pair(flag, demands_by_number[number].variable, node, [&](std::size_t there, std::size_t c) {
        return there != 0 && choices[c] != 0 ? LayoutSpace::impossible : LayoutSpace::nothing;
      });
    };
    const std::vector<std::uint32_t> numbers = numbers_of(demands);
    const Asked* part = claimed.largest_in(numbers);
    if (part != nullptr && part->demands.size() == numbers.size()) return;
    // From a set of which at most one claims it already, or one reader: another one at a time joins.
    std::vector<std::uint32_t> joined = part != nullptr ? part->demands : std::vector<std::uint32_t>{numbers.back()};
    std::optional<std::uint32_t> one_claims;
    if (part != nullptr) one_claims = part->flag;
    for (const std::uint32_t number : without(numbers, joined)) {
      if (!one_claims) {
        one_claims = add_flag(node);
        imply(demands_by_number[joined[0]], *one_claims, node);
      }
      excludes(number, *one_claims);
      joined.insert(std::lower_bound(joined.begin(), joined.end(), number), number);
      const std::uint32_t flag = add_flag(node);
      imply(demands_by_number[number], flag, node);
      imply(*one_claims, flag, node);
      claimed.add(joined, flag);
      one_claims = flag;
    }
  }

  template <class F>
  void add_pair(std::uint32_t first, std::uint32_t second, NodeId node, const F& code) {
    LayoutSpace::Factor factor{first, second, node, {}};
    bool free = true;
    const std::size_t sizes[] = {space.variables[first].size(), space.variables[second].size()};
    for (std::size_t a = 0; a < sizes[0]; ++a)
      for (std::size_t b = 0; b < sizes[1]; ++b) {
        factor.table.push_back(code(a, b));
        free = free && factor.table.back() == LayoutSpace::nothing;
      }
    if (!free) space.factors.push_back(std::move(factor));
  }

  Expected<LayoutSpace> build() {
    const NodeId bound = graph.id_bound();
    first_slot.assign(bound, 0);
    variable_of.assign(bound, 0);
    std::uint32_t count = 0;
    for (NodeId id = 0; id < bound; ++id) {
      if (!graph.contains(id)) continue;
      first_slot[id] = count;
      count += static_cast<std::uint32_t>(graph.node(id).outputs.size());
    }
    slots.resize(count);
    const std::vector<NodeId> order = graph.topological_order();
    TASO_RETURN_IF_ERROR(note_readers(order));
    std::vector<NodeId> producers;
    for (const NodeId id : order) {
      const Node& node = graph.node(id);
      if (node.weight_only) continue;
      bool used = false;
      for (std::uint32_t port = 0; port < node.outputs.size(); ++port) used = used || slot({id, port}).used;
      if (!used) continue;
      producers.push_back(id);
      if (node.kind == NodeKind::op)
        add_variable(id, node);
      else
        add_source(id);
    }
    // From the outputs up: of values that are read by more and more, as in a dense block, those with fewer readers
    // first.
    for (const NodeId id : reversed(producers))
      for (std::uint32_t port = 0; port < graph.node(id).outputs.size(); ++port)
        if (slot({id, port}).used) connect({id, port});
    return std::move(space);
  }
};

LayoutAssignment LayoutSpace::assignment(std::span<const std::uint32_t> values) const {
  NodeId bound = 0;
  for (const Variable& variable : variables) bound = std::max(bound, variable.node + 1);
  LayoutAssignment assignment(bound);
  for (std::size_t i = 0; i < variables.size(); ++i)
    if (!variables[i].choices.empty()) assignment[variables[i].node] = variables[i].choices[values[i]];
  return assignment;
}

Expected<LayoutSpace> LayoutSpaces::of(const Graph& graph) {
  return Builder{*this, graph, {}, {}, {}, {}, {}, {}, {}, {}, {}}.build();
}

}  // namespace taso
