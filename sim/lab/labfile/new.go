package labfile

import "gopkg.in/yaml.v3"

// New makes a lab of a specification, as if it had been read from a file in the
// working folder. Mistakes are reported with the lines of that file.
func New(name string, s Spec) (*File, error) {
	data, err := yaml.Marshal(Lab{APIVersion: APIVersion, Kind: Kind, Metadata: Metadata{Name: name}, Spec: s})
	if err != nil {
		return nil, err
	}
	return Parse(name, data)
}
