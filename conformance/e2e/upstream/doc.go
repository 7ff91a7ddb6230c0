// Package upstream compares results of Kubernetes' own end-to-end tests with the table of
// results that are expected on a simulated cluster. A test that was expected to pass and did not is
// a failure, and so are one that passes against expectation and one without an expectation:
// the table stays true.
//
// The package must not know how a cluster is made, nor how the tests are run.
package upstream
