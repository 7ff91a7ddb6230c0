// Package schedule answers on which nodes a pod can land, and whether its
// containers can start there. It follows kube-scheduler's filters, the
// admission of RuntimeClasses and the kubelet's own admission, version by
// version.
//
// The filters' conditions are those of k8s.io/component-helpers, the library
// that the scheduler itself uses; what is written here is their order, their
// words, and what happens before (admission) and after (the kubelet, the
// container runtime). Scores are left out: the package does not say which of
// the fitting nodes is chosen.
//
// The package knows no files, no claims and no images: what an image is made
// for comes from the caller.
package schedule
