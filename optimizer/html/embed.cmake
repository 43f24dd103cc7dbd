# cmake -DFOLDER=... -DOUT=... -P embed.cmake: writes C++ that defines what assets.h declares.
file(READ ${FOLDER}/report.css css)
file(READ ${FOLDER}/report.js js)
file(WRITE ${OUT} "#include \"optimizer/html/assets.h\"

namespace taso {

const std::string_view report_css = R\"asset(${css})asset\";
const std::string_view report_js = R\"asset(${js})asset\";

}  // namespace taso
")
