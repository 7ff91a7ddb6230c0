// Command mutation tells how much the tests of a package notice. It changes one thing
// in the package's source, runs that package's own tests, and goes on: a change that no test notices (it "survived") is
// behaviour that nothing holds.
//
//	go run ./internal/dev/mutation ./sim/windows/hns
//	go run ./internal/dev/mutation -sample 300 -list ./sim/dataplane/vfp
//
// The source in the working tree is never touched: changed files go to the compiler
// through go test -overlay, all changes inside functions at once, and an environment
// variable turns one of them on. Changes that do not compile are not counted.
// With -sample only some of the changes are tried; which, depends on their text and
// not on a random number, so two runs of one source try the same ones.
//
// What is changed: comparisons, logical and bit operators, arithmetic, numbers and
// booleans; conditions are forced to true and to false; statements, branches of a
// switch and fields of composite literals are removed; break and continue are
// swapped. Texts are not changed: how a message reads is not behaviour.
//
// It knows no package of this module, and works on any other.
package main
