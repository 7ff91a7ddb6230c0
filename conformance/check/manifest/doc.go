// Package manifest turns Kubernetes documents into subjects of rules: it
// decodes them with Kubernetes' own types, finds the pods inside workloads,
// and decides for each pod on which system it runs. It also has the conditions
// on them that a field alone cannot say.
//
// It knows no claims and no rules: the ledger says what is wrong with a pod.
package manifest
