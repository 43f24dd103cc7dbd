# cmake -DFOLDER=... -DOUT=... -P embed.cmake: writes C++ that defines what assets.h declares.
file(READ ${FOLDER}/operators.py operators)
file(READ ${FOLDER}/driver.py driver)
file(WRITE ${OUT} "#include \"session/jax/assets.h\"

namespace taso {

const std::string_view jax_operators_text = R\"asset(${operators})asset\";
const std::string_view jax_driver_text = R\"asset(${driver})asset\";

}  // namespace taso
")
