// Package nodeconf reads the configuration of a Windows node: CNI
// configurations, flannel's net-conf.json and subnet.env, the configuration
// files of kubelet and kube-proxy, and the command lines of kubelet,
// kube-proxy and flanneld as scripts, nssm and sc.exe have them. It turns each
// into a subject that rules look at, and holds the tests that a field and a
// condition cannot express.
//
// It knows how these files are written and what the programs accept. What the
// documents say about them is in the ledger: no claim is named here.
//
// # Subjects
//
//	cni                Root is the configuration of one plugin, with the keys as the
//	                   plugins' documentation spells them: Go's JSON decoder reads
//	                   "Policies" and "policies" alike. A conflist gives one subject for
//	                   each plugin, into which cniVersion and name of the list are put
//	                   as a runtime does. Value is *CNI.
//	net-conf           Root is the file, keys as flannel's documentation has them.
//	antrea-agent       Root is antrea-agent.conf of Windows nodes. Value is *Agent.
//	subnet-env         Root is a map of the keys: {"FLANNEL_NETWORK": ...}.
//	kubelet, kube-proxy, flanneld
//	                   Root is a map of flags and variables: {"--v": "4", "$NODE_NAME": "win1"}.
//	                   A flag without a value is "true". Value is *Command.
//	kubelet-config, kube-proxy-config
//	                   Root is the document.
//	service-manager    Root is a map: name, manager (nssm, sc or script), component,
//	                   program, and what was set, as nssm or sc call it: AppParameters,
//	                   DependOnService, AppStdout, binPath, depend. For a script such as
//	                   register-svc.ps1 its parameters: -NetworkMode. Value is *Service.
//
// # What is for Linux
//
// Rules of the ledger are about Windows nodes, and a false alarm is worse than
// a missed one. A command line whose program has a path such as
// /usr/bin/kubelet, or that is in a shell script or a systemd unit without
// ".exe", gives no subject; neither does a CNI configuration that only a Linux
// plugin can read when it comes out of a ConfigMap.
package nodeconf
