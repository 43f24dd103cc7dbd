// Stands in for onednn.cpp where the library was not found.
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/packed_product.h"

namespace taso::cpu {

KernelOffer onednn_convolution(const KernelRequest&, const OperatorRegistry&) {
  return decline("built without oneDNN");
}
KernelOffer onednn_convolution_and_sum(const KernelRequest&, const OperatorRegistry&) {
  return decline("built without oneDNN");
}
KernelOffer onednn_matmul(const KernelRequest&, const OperatorRegistry&) { return decline("built without oneDNN"); }
KernelOffer onednn_slow_convolution(const KernelRequest&, const OperatorRegistry&) {
  return decline("built without oneDNN");
}
KernelOffer onednn_slow_matmul(const KernelRequest&, const OperatorRegistry&) {
  return decline("built without oneDNN");
}
KernelOffer onednn_pooling(const KernelRequest&, const OperatorRegistry&) { return decline("built without oneDNN"); }
OfferedProduct onednn_packed_product(const ProductExtents&) { return {nullptr, "built without oneDNN"}; }
std::string onednn_version() { return ""; }

}  // namespace taso::cpu
