/// Operators that specifications define and ONNX does not: in a model they are nodes of the domain `taso`, whose type,
/// inputs and attributes are those of the specification. So an operator goes into files and comes back as soon as it
/// has a definition. Internal to onnx_io.
#pragma once

#include "onnx_io/export.h"
#include "onnx_io/import.h"

namespace taso {

/// The domain of such nodes; its version is 1.
inline constexpr const char* specified_domain = "taso";

/// Imports a node of the domain whose type is an operator of the catalog.
void import_specified(NodeContext& context, const OperatorCatalog& catalog);

/// Writes an operator that has no row in the export table.
void write_specified(LoweringContext& context, const OperatorCatalog& catalog);

}  // namespace taso
