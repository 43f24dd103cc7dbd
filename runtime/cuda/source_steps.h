/// How source.cpp writes the text for a program: one function for each kind of step, in files by what they write.
///
/// - source_elements.cpp: the same for every element, alone, and by packs of 16 bytes where neighbours lie together;
/// - source_rows.cpp: functions of rows (softmax, norms), with what is computed of elements before and after;
/// - source_reductions.cpp: sums and products with one result per row;
/// - source_windows.cpp: elements that look at their neighbours: pooling, depth-wise convolutions, ...;
/// - source_moves.cpp: copies, fills, gathers;
/// - source_words.cpp: integers, truth values, and what makes them;
/// - source_definitions.cpp: stages of definitions;
/// - source_beside.cpp: kernels of several programs in one launch.
///
/// The kernel of step N for any operands is called step_N, those of its parts step_N_part_M. The one before it,
/// step_N_packs, if there is one, is for operands whose addresses are multiples of what its threads read and write at
/// once: several neighbouring elements, 16 bytes where these are computed with, else as many as strides allow.
///
/// Each kernel is written by a KernelWriter. Its parameters are the step's operands in the order in which they are
/// asked for. The number of a call (`i`) or of a row (`row`) becomes coordinates; an index into an operand is a sum of
/// these times its strides. The writer is told of all indices (KernelWriter::span_over) before the first of them is
/// written.
///
/// What is computed of floating-point elements, by the first two of these files, are lines (element_lines.h).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/cuda/element_lines.h"
#include "runtime/cuda/kernel_writer.h"
#include "runtime/cuda/program.h"
#include "runtime/cuda/source.h"

namespace taso::cuda {

/// The kernels of a program so far, and those of the step that is being written.
class SourceText {
 public:
  /// What is taken from here on is of the step whose kernels have this name.
  void begin_step(std::string name);
  /// A writer for a kernel of the step, by the name that it has to have.
  [[nodiscard]] KernelWriter kernel(bool packed = false) const {
    return KernelWriter(packed ? prefix_ + "_packs" : prefix_);
  }
  /// Takes a written kernel; the one for any operands comes last.
  void take(const KernelWriter& writer);
  /// Takes a function that kernels call.
  void add_function(const std::string& function);
  /// What was taken of the step.
  [[nodiscard]] const GeneratedStep& step() const { return step_; }
  [[nodiscard]] const std::vector<KernelWriter>& writers() const { return writers_; }
  /// The text of all kernels, without what they call.
  [[nodiscard]] const std::string& kernels() const { return text_; }

 private:
  std::string prefix_, text_;
  GeneratedStep step_;
  std::vector<KernelWriter> writers_;
};

/// Writes the kernels for a step: none if there is nothing to compute.
void write_step(SourceText& text, const UnaryStep& step);
void write_step(SourceText& text, const BinaryStep& step);
void write_step(SourceText& text, const EpilogueStep& step);
void write_step(SourceText& text, const BatchNormStep& step);
void write_step(SourceText& text, const ChainStep& step);

void write_step(SourceText& text, const SoftmaxStep& step);
void write_step(SourceText& text, const RowNormStep& step);
void write_step(SourceText& text, const GroupNormStep& step);
void write_step(SourceText& text, const RowChainStep& step);

void write_step(SourceText& text, const ReductionStep& step);
void write_step(SourceText& text, const ThinProductStep& step);

void write_step(SourceText& text, const PoolingStep& step);
void write_step(SourceText& text, const DepthwiseStep& step);
void write_step(SourceText& text, const LrnStep& step);
void write_step(SourceText& text, const TurnedPairsStep& step);

void write_step(SourceText& text, const CopyStep& step);
void write_step(SourceText& text, const CopiesStep& step);
void write_step(SourceText& text, const FillStep& step);
void write_step(SourceText& text, const PaddingStep& step);
void write_step(SourceText& text, const GatheringStep& step);

void write_step(SourceText& text, const WordsStep& step);

void write_step(SourceText& text, const DefinitionStep& step);

void write_step(SourceText& text, const BesideStep& step);

/// Writes the kernels that compute lines for every element of a box: lines that nothing reads, and sources that nothing
/// loads, are left out.
void write_elements(SourceText& text, ElementKernel kernel);

}  // namespace taso::cuda
