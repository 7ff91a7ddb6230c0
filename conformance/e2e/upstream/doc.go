// Package upstream holds results of Kubernetes' own end-to-end tests against what is
// expected of them on a simulated cluster. A test that was expected to pass and did not is
// a failure, and so are one that passes against expectation and one that nobody expects:
// the table stays true.
//
// The package must not know how a cluster is made, nor how the tests are run.
package upstream
