#include "runtime/layout_space.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <unordered_map>

#include "runtime/layout_choices.h"
#include "runtime/strides.h"
#include "support/reversed.h"

namespace taso {
namespace {

using Kind = Configuration::Kind;

bool is_full_view(const Node& node) {
  return node.inputs.size() == 1 && node.outputs.size() == 1 &&
         (node.op == "reshape" || node.op == "broadcast" || node.op == "transpose");
}

using Code = LayoutSpace::Code;

/// What a node's label says: its operator, attributes and output types.
struct Facts {
  const Behaviour* traits = nullptr;
  bool known = true;  ///< All outputs are of known type.
  bool full_view = false;
  bool outermost = false;    ///< Of a concatenation: in some layout, its operands lie one behind the other.
  LayoutSet transposed = 0;  ///< Of a transpose: layouts of its input in which it is a view of rows.
  /// Per output: the layouts of images in which it may be wanted, and whether a reader of images wants channels_last.
  struct Image {
    LayoutSet layouts = 0;
    bool channels_last = false;
  };
  std::vector<Image> images;
};

/// The configurations among which a node has a choice, given its operands and readers. Codes here and below are of
/// numbers of kernels.
struct Alternatives {
  std::uint32_t number = 0;  ///< By which others name it.
  Choices choices;
  std::vector<Code> kernels;    ///< Per choice.
  bool free = true;             ///< No choice has a kernel.
  std::vector<LayoutSet> made;  ///< Per output: the layouts of the choices.
};

/// The choices of a reader that ask for something: a form of a value, or the value as a piece.
struct Pattern {
  std::vector<char> choices;
  std::vector<Code> implies;   ///< By flag and choice: a choice that asks wants the flag set.
  std::vector<Code> excludes;  ///< A choice that asks wants the flag not set.
};

/// What a value adds to a space: conversions, and who may make it a piece of a concatenation. Readers are named by
/// their order.
struct Connection {
  struct Asks {
    std::uint32_t reader = 0;
    const Pattern* pattern = nullptr;
  };
  struct Claim {
    std::uint32_t reader = 0;
    std::vector<Code> table;  ///< By the producer's choice and the reader's.
  };
  struct Conversion {
    enum class Kind : std::uint8_t {
      always,  ///< By the producer's choice.
      pair,    ///< By its choice and that of `reader`.
      form,    ///< By its choice and whether one of several readers asks.
    };
    Kind kind = Kind::always;
    std::uint32_t reader = 0;
    std::vector<Asks> asks;
    std::vector<Code> table;
  };
  std::vector<Claim> claims;
  std::vector<std::vector<Asks>> once;  ///< For a layout: at most one of these makes the value a piece.
  std::vector<Conversion> conversions;
};

}  // namespace

/// What was found out about nodes and values, by all that it depends on.
struct LayoutSpaces::Memory {
  std::unordered_map<Hash128, Facts> facts;                ///< By the node's label.
  std::unordered_map<Hash128, Alternatives> alternatives;  ///< By label, operands and preferences.
  std::unordered_map<Hash128, Connection> connections;     ///< By the alternatives of the producer and the readers.
  std::unordered_map<Hash128, Pattern> patterns;           ///< By content.
  Alternatives source = {0, {nullptr}, {LayoutSpace::nothing}, true, {}};  ///< Of an input or an opaque node.
  std::size_t words = 0;                                                   ///< Rough size of all.
};

struct LayoutSpaces::Builder {
  Builder(LayoutSpaces& spaces, const Graph& which, Memory& remembered)
      : owner(spaces), graph(which), memory(remembered) {}

  LayoutSpaces& owner;
  const Graph& graph;
  Memory& memory;
  LayoutSpace space;

  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// A reader's operand; those of one reader are adjacent, readers ascend.
  struct Use {
    std::uint32_t variable = 0, position = 0, next = none;
  };
  /// Per output of each node.
  struct Slot {
    LayoutSet available = 0;
    ReaderPreferences preferences;
    bool used = false, output = false;  ///< `output`: read as rows by an output or an opaque node.
    std::uint32_t first_use = none, last_use = none;
  };
  std::vector<std::uint32_t> first_slot, variable_of;  ///< Per node.
  std::vector<const Facts*> facts;                     ///< Per node; of those that are not weight-only.
  std::vector<Slot> slots;
  std::vector<Use> uses;
  std::vector<const Alternatives*> alternatives;  ///< Per variable; null for forms.

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

  static Code code_of(const std::shared_ptr<const PlannedKernel>& kernel) {
    return kernel ? LayoutSpace::first_kernel + kernel->number : LayoutSpace::nothing;
  }

  Status unknown(NodeId id) const {
    const Node& node = graph.node(id);
    return bad_input("the shape of a tensor of node " + std::to_string(id) + " (" +
                     (node.op.empty() ? "input '" + node.name + "'" : node.op) + ") is not known");
  }

  const Facts& facts_of(const Node& node) {
    const auto [place, fresh] = memory.facts.try_emplace(node.label);
    Facts& made = place->second;
    if (!fresh) return made;
    made.traits = &behaviour_of(node.op, *owner.registry_);
    made.full_view = is_full_view(node);
    memory.words += 16 + node.outputs.size();
    for (const TensorType& type : node.outputs) {
      made.known = made.known && type.known;
      made.images.emplace_back();
      if (!type.known || !can_be_channels_last(type)) continue;
      Facts::Image& image = made.images.back();
      image.channels_last = canonical(type.shape, Layout::channels_last) == Layout::channels_last;
      if (image.channels_last) image.layouts |= set_of(Layout::channels_last);
      if (owner.blocks_ && fits(*owner.blocks_, type.shape))
        image.layouts |= set_of(canonical(type.shape, *owner.blocks_));
    }
    if (node.kind != NodeKind::op || !made.known) return made;
    if (made.traits->view == ViewKind::concat) {
      const Shape& shape = node.outputs[0].shape;
      const std::size_t axis = axis_of(node.attributes.integer("axis"), shape.size());
      made.outermost = std::any_of(all_layouts.begin(), all_layouts.end(), [&](Layout layout) {
        return fits(layout, shape) && is_outermost(shape, layout, axis);
      });
    }
    if (made.traits->view == ViewKind::transpose) {
      TensorType type = node.outputs[0];  // of the input
      const std::vector<std::int64_t>& permutation = node.attributes.integers("perm");
      for (std::size_t axis = 0; axis < type.shape.size(); ++axis)
        type.shape[axis_of(permutation[axis], type.shape.size())] = node.outputs[0].shape[axis];
      for (const Layout from : orders)
        if (from != Layout::channels_last && fits(from, type.shape) && canonical(type.shape, from) == from &&
            transpose_moves_nothing(node, type, from, Layout::row_major))
          made.transposed |= set_of(from);
    }
    return made;
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
      if (node.weight_only) continue;
      facts[id] = &facts_of(node);
      if (node.kind == NodeKind::opaque) {
        for (const Value& input : node.inputs)
          if (graph.type(input).known && !graph.node(input.node).weight_only)
            slot(input).used = slot(input).output = true;
        continue;
      }
      if (node.kind != NodeKind::op) continue;
      bool used = false;
      for (std::uint32_t port = 0; port < node.outputs.size(); ++port) used = used || slot({id, port}).used;
      if (!used) continue;
      const Facts& known = *facts[id];
      if (!known.known) return unknown(id);
      const Behaviour& traits = *known.traits;
      ReaderPreferences& own = slot({id, 0}).preferences;
      if (traits.view == ViewKind::concat) own.in_place = known.outermost && can_be_in_place(node);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const Value value = operand_of(node, traits, i);
        const Node& producer = graph.node(value.node);
        if (producer.weight_only) continue;
        if (!producer.outputs[value.port].known) return unknown(value.node);
        Slot& source = slot(value);
        source.used = true;
        if (traits.preference == LayoutPreference::spatial && traits.is_image(i)) {
          const Facts::Image& image = facts_of(producer).images[value.port];
          source.preferences.images = source.preferences.images || image.channels_last;
          source.available |= image.layouts;
        }
        if (own.in_place || (known.full_view && own.piece)) source.preferences.piece = true;
        source.preferences.transposed |= known.transposed;
      }
    }
    return {};
  }

  bool can_be_in_place(const Node& node) const {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (graph.node(node.inputs[i].node).weight_only) return false;
      for (std::size_t j = 0; j < i; ++j)
        if (node.inputs[i] == node.inputs[j]) return false;
    }
    return true;
  }

  // ---- Variables and factors.

  /// Adds a factor with a table of numbers of kernels.
  void add_factor(std::uint32_t first, std::uint32_t second, NodeId node, std::span<const Code> table) {
    space.factors.push_back({first, second, node, static_cast<std::uint32_t>(space.codes.size()),
                             static_cast<std::uint32_t>(table.size())});
    for (Code code : table) {
      if (code >= LayoutSpace::first_kernel) {
        const std::uint32_t number = code - LayoutSpace::first_kernel;
        Code& known = owner.codes_[number];
        if (known == 0) {
          known = LayoutSpace::first_kernel + static_cast<Code>(space.kernels.size());
          space.kernels.push_back(owner.kernels_.at(number));
          space.nodes.push_back(node);
        }
        code = known;
      }
      space.codes.push_back(code);
    }
  }

  const Alternatives& alternatives_of(NodeId id, const Node& node) {
    const Behaviour& traits = *facts[id]->traits;
    const ReaderPreferences preferences = slot({id, 0}).preferences;
    Mixer mixer;
    mixer.add(node.label);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value value = operand_of(node, traits, i);
      const Node& producer = graph.node(value.node);
      mixer.add(producer.outputs[value.port]);
      mixer.add(producer.weight_only ? 1 : static_cast<std::uint64_t>(slot(value).available) << 1);
    }
    mixer.add((static_cast<std::uint64_t>(preferences.transposed) << 3) | (preferences.images ? 4U : 0U) |
              (preferences.piece ? 2U : 0U) | (preferences.in_place ? 1U : 0U));
    const auto [place, fresh] = memory.alternatives.try_emplace(mixer.finish());
    Alternatives& made = place->second;
    if (!fresh) return made;
    made.number = static_cast<std::uint32_t>(memory.alternatives.size());
    std::vector<OperandLayouts> in;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value value = operand_of(node, traits, i);
      const bool weight = graph.node(value.node).weight_only;
      in.push_back({&graph.type(value), weight, weight ? LayoutSet{0} : slot(value).available});
    }
    made.choices = LayoutChoices(owner.kernels_, owner.blocks_).of(node, traits, in, preferences);
    made.made.assign(node.outputs.size(), 0);
    for (const auto& choice : made.choices) {
      made.kernels.push_back(code_of(choice->kernel));
      made.free = made.free && made.kernels.back() == LayoutSpace::nothing;
      for (std::uint32_t port = 0; port < node.outputs.size(); ++port)
        made.made[port] |= set_of(canonical(node.outputs[port].shape, choice->outputs[port]));
    }
    memory.words += 32 + 32 * made.choices.size();
    return made;
  }

  std::uint32_t add(NodeId id, const Alternatives& added) {
    const auto variable = static_cast<std::uint32_t>(space.variables.size());
    variable_of[id] = variable;
    space.variables.push_back({id, added.choices});
    alternatives.push_back(&added);
    return variable;
  }

  void add_variable(NodeId id, const Node& node) {
    const Alternatives& known = alternatives_of(id, node);
    const std::uint32_t variable = add(id, known);
    if (!known.free) {
      make_room();
      add_factor(variable, variable, id, known.kernels);
    }
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port) slot({id, port}).available |= known.made[port];
    const Behaviour& traits = *facts[id]->traits;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value value = operand_of(node, traits, i);
      if (graph.node(value.node).weight_only) continue;
      Slot& source = slot(value);
      const auto use = static_cast<std::uint32_t>(uses.size());
      uses.push_back({variable, static_cast<std::uint32_t>(i), none});
      (source.first_use == none ? source.first_use : uses[source.last_use].next) = use;
      source.last_use = use;
    }
  }

  /// Room for codes of kernels that have been made since.
  void make_room() {
    if (owner.codes_.size() < owner.kernels_.size()) owner.codes_.resize(owner.kernels_.size(), 0);
  }

  /// A reader of a value: per choice, the layouts it wants, and the one it claims the value in.
  struct Reader {
    const Alternatives* alternatives = nullptr;
    std::vector<LayoutSet> wants, claims;
    bool claims_any = false;
  };

  /// What `value` adds.
  Connection make_connection(Value value, const Alternatives& producer, bool output) {
    const TensorType& type = graph.type(value);
    std::vector<Layout> natives;
    for (const auto& choice : producer.choices)
      natives.push_back(choice ? canonical(type.shape, choice->outputs[value.port]) : Layout::row_major);
    std::vector<Reader> readers;
    for (std::uint32_t use = slot(value).first_use; use != none;) {
      const std::uint32_t variable = uses[use].variable;
      Reader reader{
          alternatives[variable], std::vector<LayoutSet>(alternatives[variable]->choices.size(), 0), {}, false};
      for (; use != none && uses[use].variable == variable; use = uses[use].next)
        for (std::size_t c = 0; c < reader.wants.size(); ++c)
          reader.wants[c] |= set_of(canonical(type.shape, reader.alternatives->choices[c]->inputs[uses[use].position]));
      for (std::size_t c = 0; c < reader.wants.size(); ++c) {
        const Configuration& choice = *reader.alternatives->choices[c];
        const bool claims = choice.claims || choice.kind == Kind::in_place;
        reader.claims.push_back(claims ? reader.wants[c] : LayoutSet{0});
        reader.claims_any = reader.claims_any || claims;
      }
      readers.push_back(std::move(reader));
    }
    Connection made;
    for (std::uint32_t r = 0; r < readers.size(); ++r) {
      if (!readers[r].claims_any) continue;
      const auto whole = [&](std::size_t choice) {  // what it made is a kernel's output
        const auto& by = producer.choices[choice];
        return by && (by->kind == Kind::kernel || by->claims);
      };
      std::vector<Code> table = pair_table(natives.size(), readers[r].claims.size(), [&](std::size_t p, std::size_t c) {
        return (readers[r].claims[c] & set_of(natives[p])) != 0 && !whole(p) ? LayoutSpace::impossible
                                                                             : LayoutSpace::nothing;
      });
      if (!is_free(table)) made.claims.push_back({r, std::move(table)});
    }
    for (const Layout layout : all_layouts) {
      std::vector<Connection::Asks> asks = asking(readers, &Reader::claims, layout);
      if (asks.size() > 1) made.once.push_back(std::move(asks));
    }
    for (const Layout layout : all_layouts) convert(made, type, natives, readers, output, layout);
    return made;
  }

  /// The readers of which some choice has the layout among its masks.
  std::vector<Connection::Asks> asking(const std::vector<Reader>& readers, std::vector<LayoutSet> Reader::*masks,
                                       Layout layout) {
    std::vector<Connection::Asks> asks;
    for (std::uint32_t r = 0; r < readers.size(); ++r) {
      std::vector<char> choices;
      for (const LayoutSet mask : readers[r].*masks) choices.push_back((mask & set_of(layout)) != 0 ? 1 : 0);
      if (std::find(choices.begin(), choices.end(), 1) != choices.end())
        asks.push_back({r, &pattern_of(std::move(choices))});
    }
    return asks;
  }

  const Pattern& pattern_of(std::vector<char> choices) {
    Mixer mixer;
    for (const char asks : choices) mixer.add(static_cast<std::uint64_t>(asks));
    mixer.add(choices.size());
    const auto [place, fresh] = memory.patterns.try_emplace(mixer.finish());
    Pattern& made = place->second;
    if (!fresh) return made;
    const auto code = [](bool wrong) { return wrong ? LayoutSpace::impossible : LayoutSpace::nothing; };
    made.implies = pair_table(2, choices.size(),
                              [&](std::size_t flag, std::size_t c) { return code(flag == 0 && choices[c] != 0); });
    made.excludes = pair_table(2, choices.size(),
                               [&](std::size_t flag, std::size_t c) { return code(flag != 0 && choices[c] != 0); });
    made.choices = std::move(choices);
    memory.words += 16 + 3 * made.choices.size();
    return made;
  }

  void convert(Connection& made, const TensorType& type, const std::vector<Layout>& natives,
               const std::vector<Reader>& readers, bool output, Layout layout) {
    using As = Connection::Conversion::Kind;
    std::vector<Connection::Asks> some = asking(readers, &Reader::wants, layout);
    const bool always = (output && layout == Layout::row_major) ||
                        std::any_of(some.begin(), some.end(), [](const Connection::Asks& asks) {
                          const std::vector<char>& choices = asks.pattern->choices;
                          return std::find(choices.begin(), choices.end(), 0) == choices.end();
                        });
    if (!always && some.empty()) return;
    if (std::all_of(natives.begin(), natives.end(), [&](Layout native) { return native == layout; })) return;
    std::vector<Code> conversion;
    for (const Layout native : natives)
      conversion.push_back(native == layout ? LayoutSpace::nothing
                                            : code_of(owner.kernels_.reorder(type, native, layout)));
    if (always) {
      made.conversions.push_back({As::always, 0, {}, std::move(conversion)});
      return;
    }
    const auto if_asked = [&](const std::vector<char>& asked) {
      return pair_table(natives.size(), asked.size(), [&](std::size_t p, std::size_t c) {
        return asked[c] != 0 ? conversion[p] : LayoutSpace::nothing;
      });
    };
    if (some.size() == 1)
      made.conversions.push_back({As::pair, some[0].reader, {}, if_asked(some[0].pattern->choices)});
    else
      made.conversions.push_back({As::form, 0, std::move(some), if_asked({0, 1})});
  }

  template <class F>
  static std::vector<Code> pair_table(std::size_t first, std::size_t second, const F& code) {
    std::vector<Code> table;
    table.reserve(first * second);
    for (std::size_t a = 0; a < first; ++a)
      for (std::size_t b = 0; b < second; ++b) table.push_back(code(a, b));
    return table;
  }

  static bool is_free(const std::vector<Code>& table) {
    return std::all_of(table.begin(), table.end(), [](Code code) { return code == LayoutSpace::nothing; });
  }

  /// Conversions of a value, and who may make it a piece of a concatenation.
  void connect(Value value) {
    const Slot& at = slot(value);
    const std::uint32_t producer = variable_of[value.node];
    readers_.clear();
    Mixer mixer;
    mixer.add(alternatives[producer]->number);
    mixer.add((static_cast<std::uint64_t>(value.port) << 1) | (at.output ? 1 : 0));
    if (alternatives[producer] == &memory.source) mixer.add(graph.type(value));
    for (std::uint32_t use = at.first_use; use != none; use = uses[use].next) {
      const std::uint32_t variable = uses[use].variable;
      if (readers_.empty() || readers_.back() != variable) {
        readers_.push_back(variable);
        mixer.add(alternatives[variable]->number);
      }
      mixer.add((static_cast<std::uint64_t>(readers_.size()) << 32) | uses[use].position);
    }
    const auto [place, fresh] = memory.connections.try_emplace(mixer.finish());
    Connection& known = place->second;
    if (fresh) {
      known = make_connection(value, *alternatives[producer], at.output);
      memory.words += 32;
      for (const Connection::Claim& claim : known.claims) memory.words += 8 + claim.table.size() / 2;
      for (const auto& asks : known.once) memory.words += 4 + 2 * asks.size();
      for (const Connection::Conversion& conversion : known.conversions)
        memory.words += 12 + 2 * conversion.asks.size() + conversion.table.size() / 2;
    }
    make_room();
    for (const Connection::Claim& claim : known.claims)
      add_factor(producer, readers_[claim.reader], value.node, claim.table);
    for (const auto& asks : known.once) claim_once(asks, value.node);
    for (const Connection::Conversion& conversion : known.conversions) switch (conversion.kind) {
        case Connection::Conversion::Kind::always:
          add_factor(producer, producer, value.node, conversion.table);
          break;
        case Connection::Conversion::Kind::pair:
          add_factor(producer, readers_[conversion.reader], value.node, conversion.table);
          break;
        case Connection::Conversion::Kind::form:
          add_factor(producer, wanted(conversion.asks, value.node), value.node, conversion.table);
          break;
      }
  }

  std::vector<std::uint32_t> readers_;  ///< Of the value being connected: variables, ascending.

  /// Choices of a variable that ask for something. They are numbered; equal ones have one number.
  struct Demand {
    std::uint32_t variable = 0;
    const Pattern* pattern = nullptr;
    std::uint32_t next = none;  ///< Another one of the variable.
  };
  std::vector<Demand> demands;
  std::vector<std::uint32_t> first_demand;  ///< Per variable, as far as there are any.

  /// A set of demands, as ascending numbers of them, and the variable "one of them is asked for".
  struct Asked {
    std::vector<std::uint32_t> demands;
    std::uint32_t flag = 0;
  };

  /// Sets of demands by their members. There is one variable for a set, and where a set holds another one, its variable
  /// follows from that one's: for the nested sets of a dense block, each has a few neighbours instead of all readers.
  struct AskedSets {
    std::vector<Asked> sets;
    std::vector<absl::InlinedVector<std::uint32_t, 4>> of_demand;  ///< Sets that hold a demand, ascending.
    std::vector<std::uint32_t> common;                             ///< Per set: members counted; 0 between questions.

    void add(std::vector<std::uint32_t> demands, std::uint32_t flag) {
      if (of_demand.size() <= demands.back()) of_demand.resize(demands.back() + 1);
      for (const std::uint32_t demand : demands) of_demand[demand].push_back(static_cast<std::uint32_t>(sets.size()));
      sets.push_back({std::move(demands), flag});
      common.push_back(0);
    }

    /// The largest known set of at least two that `demands` holds, the last one of them; null if there is none.
    [[nodiscard]] const Asked* largest_in(const std::vector<std::uint32_t>& demands) {
      const Asked* best = nullptr;
      for (const std::uint32_t demand : demands) {
        if (demand >= of_demand.size()) continue;
        for (const std::uint32_t set : of_demand[demand])
          if (++common[set] == sets[set].demands.size() && sets[set].demands.size() >= 2 &&
              (best == nullptr || sets[set].demands.size() > best->demands.size() ||
               (sets[set].demands.size() == best->demands.size() && &sets[set] > best)))
            best = &sets[set];
      }
      for (const std::uint32_t demand : demands)
        if (demand < of_demand.size())
          for (const std::uint32_t set : of_demand[demand]) common[set] = 0;
      return best;
    }
  };

  AskedSets forms;    ///< Readers that ask for a form.
  AskedSets claimed;  ///< Readers that ask for a piece; at most one of a set does.

  std::uint32_t number_of(std::uint32_t variable, const Pattern* pattern) {
    if (first_demand.size() <= variable) first_demand.resize(space.variables.size(), none);
    for (std::uint32_t number = first_demand[variable]; number != none; number = demands[number].next)
      if (demands[number].pattern == pattern) return number;
    demands.push_back({variable, pattern, first_demand[variable]});
    return first_demand[variable] = static_cast<std::uint32_t>(demands.size() - 1);
  }

  std::vector<std::uint32_t> numbers_of(const std::vector<Connection::Asks>& asks) {
    std::vector<std::uint32_t> numbers;
    numbers.reserve(asks.size());
    for (const Connection::Asks& one : asks) numbers.push_back(number_of(readers_[one.reader], one.pattern));
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
    alternatives.push_back(nullptr);
    return static_cast<std::uint32_t>(space.variables.size() - 1);
  }

  /// `flag` is set where a choice of the demand asks.
  void imply_by(std::uint32_t demand, std::uint32_t flag, NodeId node) {
    add_factor(flag, demands[demand].variable, node, demands[demand].pattern->implies);
  }

  /// `flag` is set where `part` is.
  void imply(std::uint32_t part, std::uint32_t flag, NodeId node) {
    static constexpr std::array<Code, 4> table = {LayoutSpace::nothing, LayoutSpace::nothing, LayoutSpace::impossible,
                                                  LayoutSpace::nothing};
    add_factor(part, flag, node, table);
  }

  /// The variable of a form that these readers ask for: set where one of them does.
  std::uint32_t wanted(const std::vector<Connection::Asks>& asks, NodeId node) {
    std::vector<std::uint32_t> numbers = numbers_of(asks);
    const Asked* part = forms.largest_in(numbers);
    if (part != nullptr && part->demands.size() == numbers.size()) return part->flag;
    const std::uint32_t flag = add_flag(node);
    std::vector<std::uint32_t> rest = numbers;
    for (; part != nullptr; part = forms.largest_in(rest)) {
      imply(part->flag, flag, node);
      rest = without(rest, part->demands);
    }
    for (const std::uint32_t number : rest) imply_by(number, flag, node);
    forms.add(std::move(numbers), flag);
    return flag;
  }

  /// At most one of these readers makes the value a piece of its output.
  void claim_once(const std::vector<Connection::Asks>& asks, NodeId node) {
    const std::vector<std::uint32_t> numbers = numbers_of(asks);
    const Asked* part = claimed.largest_in(numbers);
    if (part != nullptr && part->demands.size() == numbers.size()) return;
    // From a set of which at most one claims it already, or one reader: another one at a time joins.
    std::vector<std::uint32_t> joined = part != nullptr ? part->demands : std::vector<std::uint32_t>{numbers.back()};
    std::optional<std::uint32_t> one_claims;
    if (part != nullptr) one_claims = part->flag;
    for (const std::uint32_t number : without(numbers, joined)) {
      if (!one_claims) {
        one_claims = add_flag(node);
        imply_by(joined[0], *one_claims, node);
      }
      add_factor(*one_claims, demands[number].variable, node, demands[number].pattern->excludes);
      joined.insert(std::lower_bound(joined.begin(), joined.end(), number), number);
      const std::uint32_t flag = add_flag(node);
      imply_by(number, flag, node);
      imply(*one_claims, flag, node);
      claimed.add(joined, flag);
      one_claims = flag;
    }
  }

  Expected<LayoutSpace> build() {
    const NodeId bound = graph.id_bound();
    first_slot.assign(bound, 0);
    variable_of.assign(bound, 0);
    facts.assign(bound, nullptr);
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
        add(id, memory.source);
    }
    // From the outputs up: of values that are read by more and more, as in a dense block, those with fewer readers
    // first.
    for (const NodeId id : reversed(producers))
      for (std::uint32_t port = 0; port < graph.node(id).outputs.size(); ++port)
        if (slot({id, port}).used) connect({id, port});
    for (const auto& kernel : space.kernels) owner.codes_[kernel->number] = 0;
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

LayoutSpaces::LayoutSpaces(const OperatorRegistry& registry, int threads, std::optional<Layout> blocks,
                           int cached_tenths, ElementType float_storage, std::size_t maximum_memory)
    : registry_(&registry),
      kernels_(threads, cached_tenths, float_storage),
      blocks_(blocks),
      maximum_memory_(maximum_memory) {}
LayoutSpaces::~LayoutSpaces() = default;
LayoutSpaces::LayoutSpaces(LayoutSpaces&&) noexcept = default;
LayoutSpaces& LayoutSpaces::operator=(LayoutSpaces&&) noexcept = default;

Expected<LayoutSpace> LayoutSpaces::of(const Graph& graph) {
  // Spaces that refer to what is forgotten keep it.
  if (!memory_ || memory_->words > maximum_memory_) memory_ = std::make_shared<Memory>();
  Builder builder(*this, graph, *memory_);
  builder.space.memory = memory_;
  return builder.build();
}

}  // namespace taso
