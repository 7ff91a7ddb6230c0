// Package vfp is the Virtual Filtering Platform: the programmable part of the
// Hyper-V virtual switch.
//
// A [Switch] has [Port]s. A port has an ordered list of [Layer]s, a layer has [Group]s
// per direction and address family, a group has [Rule]s by priority, and a rule has an
// [Action], one type for each kind of rule that vfpctrl knows. A packet visits the
// layers in order (inbound in the opposite order); in each layer an existing flow wins,
// otherwise the first matching rule of the groups decides, otherwise the layer's
// default. What all layers together did to a packet is kept as one unified flow, so
// that the next packet of the flow costs one look-up; a packet without one passes
// through all layers.
//
// The package knows packets, rules and flows. It must not know HNS, Windows
// builds, nodes, Services or pods: the compiler of the rules passes them in
// with their origin and the fact that they rest on.
package vfp
