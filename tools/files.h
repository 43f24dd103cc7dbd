/// The files of a command line: what a program reads and what it writes. No output may be an input or another output,
/// whatever names them; a program learns that before it begins to work.
///
/// Every option whose value names a file or folder is added by FileOptions, which says so; parse_command_line
/// (tools/common.h) refuses a program with an option that is not. What no option names, such as a certificate beside a
/// model, or the data beside one, a program claims itself.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "support/file_place.h"
#include "support/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace taso::tools {

/// What one run reads and writes. Each claim is compared with those before it by the place of the file (place_of), so
/// the order does not matter; an error of code usage names both. `what` says in it whose file that is: an option's
/// name, or some words.
class FileClaims {
 public:
  /// A file that is read; it need not exist.
  [[nodiscard]] Status reads(const std::string& what, const std::string& path);
  /// The files with one of the extensions in a folder and below it. What is no folder is a file.
  [[nodiscard]] Status reads_all(const std::string& what, const std::string& path,
                                 const std::vector<std::string>& extensions);
  /// A file that is written; "-" is stdout, which holds one output, and /dev/null holds any number. It may be the file
  /// that is read as `itself`.
  [[nodiscard]] Status writes(const std::string& what, const std::string& path, const std::string& itself = "");
  /// A file that is kept from run to run: read and written.
  [[nodiscard]] Status updates(const std::string& what, const std::string& path);
  /// A folder that the program makes if need be. Files in it whose names end in one of the extensions are its own.
  [[nodiscard]] Status fills(const std::string& what, const std::string& folder,
                             const std::vector<std::string>& extensions = {});
  /// Whether all that is to be written can be, as far as it can be seen beforehand (find_output).
  [[nodiscard]] Status can_write() const;
  /// Whether an output goes to stdout: nothing else is printed there then.
  [[nodiscard]] bool uses_stdout() const;

 private:
  enum class Use { read, written, updated, folder };
  struct Claim {
    std::string what, path;
    FilePlace place;
    Use use = Use::read;
    std::string itself;
    std::vector<std::string> extensions;
  };
  [[nodiscard]] Status add(Claim claim);
  [[nodiscard]] static bool clash(const Claim& a, const Claim& b);
  [[nodiscard]] static Error error_of(const Claim& earlier, const Claim& later);
  std::vector<Claim> claims_;
};

/// Adds the options of a command line that name files and remembers what each does with them. The variables must
/// outlive it. An option's type name is shown by --help.
class FileOptions {
 public:
  /// A file that is read. With a type name such as NAME=FILE the file is what stands after the last '='.
  CLI::Option* reads(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
                     const std::string& type = "FILE");
  /// Several files, one with each occurrence of the option.
  CLI::Option* reads(CLI::App& app, const std::string& names, std::vector<std::string>& values, const std::string& help,
                     const std::string& type = "FILE");
  /// A file that is written; "-" is stdout.
  CLI::Option* writes(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
                      const std::string& itself = "");
  /// A file that is read and written.
  CLI::Option* updates(CLI::App& app, const std::string& names, std::string& value, const std::string& help);
  /// A folder that is filled.
  CLI::Option* fills(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
                     const std::vector<std::string>& extensions = {});
  /// Any other option: `claim` says what a run does with what it names. It is called if the option is given, and with
  /// `always` in any case. The argument is the option's name.
  CLI::Option* declare(CLI::Option* option, std::function<Status(FileClaims&, const std::string& name)> claim,
                       bool always = false);
  [[nodiscard]] bool is_declared(const CLI::Option* option) const;

  /// Claims what a parsed command line names; all of it can be written.
  [[nodiscard]] Status claim_all();
  /// For what is claimed later. So far empty before claim_all.
  [[nodiscard]] FileClaims& claims() { return claims_; }
  [[nodiscard]] const FileClaims& claims() const { return claims_; }

 private:
  struct Declared {
    CLI::Option* option = nullptr;
    std::function<Status(FileClaims&, const std::string&)> claim;
    bool always = false;
  };
  std::vector<Declared> declared_;
  FileClaims claims_;
};

/// The name of an option in messages: "--output", or "MODEL" of one that has a place instead of a name.
[[nodiscard]] std::string option_name(const CLI::Option& option);

/// Why an option of a command line is wrong: it takes a file and is not declared, or its type name is none. Empty if
/// all are right.
[[nodiscard]] std::string undeclared_option(const CLI::App& app, const FileOptions& files);

}  // namespace taso::tools
