package findings

import (
	"encoding/json"
	"maps"
)

// The part of SARIF 2.1.0 that winlab writes
// (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html), each type named after its
// section there. What winlab never fills in is written with the default that the schema gives it,
// none or unset, so that readers need not know the defaults. Tests read it with a library of
// others and hold it against the schema; the program does without that library, whose expressions
// and tables every command would make when it starts (docs/reference/speed.md).
type (
	sarifLog struct {
		Schema     string     `json:"$schema"`
		Version    string     `json:"version"`
		Runs       []sarifRun `json:"runs"`
		Properties properties `json:"properties"`
	}

	sarifRun struct {
		Addresses                none              `json:"addresses"`
		ColumnKind               string            `json:"columnKind"`
		Graphs                   none              `json:"graphs"`
		Invocations              []sarifInvocation `json:"invocations"`
		Language                 string            `json:"language"`
		LogicalLocations         none              `json:"logicalLocations"`
		NewlineSequences         []string          `json:"newlineSequences"`
		Policies                 none              `json:"policies"`
		Properties               properties        `json:"properties"`
		RedactionTokens          none              `json:"redactionTokens"`
		Results                  []sarifResult     `json:"results"`
		RunAggregates            none              `json:"runAggregates"`
		Taxonomies               none              `json:"taxonomies"`
		ThreadFlowLocations      none              `json:"threadFlowLocations"`
		Tool                     sarifTool         `json:"tool"`
		Translations             none              `json:"translations"`
		VersionControlProvenance none              `json:"versionControlProvenance"`
		WebRequests              none              `json:"webRequests"`
		WebResponses             none              `json:"webResponses"`
	}

	sarifTool struct {
		Driver     sarifDriver `json:"driver"`
		Extensions none        `json:"extensions"`
	}

	sarifDriver struct {
		Contents            []string    `json:"contents"`
		FullName            string      `json:"fullName,omitempty"`
		InformationURI      string      `json:"informationUri"`
		IsComprehensive     bool        `json:"isComprehensive"`
		Language            string      `json:"language"`
		Locations           none        `json:"locations"`
		Name                string      `json:"name"`
		Notifications       none        `json:"notifications"`
		Rules               []sarifRule `json:"rules"`
		SupportedTaxonomies none        `json:"supportedTaxonomies"`
		Taxa                none        `json:"taxa"`
	}

	// sarifRule is a reportingDescriptor.
	sarifRule struct {
		DefaultConfiguration sarifConfiguration `json:"defaultConfiguration"`
		FullDescription      sarifText          `json:"fullDescription"`
		Help                 sarifText          `json:"help"`
		ID                   string             `json:"id"`
		Properties           properties         `json:"properties"`
		Relationships        none               `json:"relationships"`
		ShortDescription     sarifText          `json:"shortDescription"`
	}

	sarifConfiguration struct {
		Enabled yes    `json:"enabled"`
		Level   string `json:"level"`
		Rank    unset  `json:"rank"`
	}

	// sarifText is a multiformatMessageString.
	sarifText struct {
		Markdown string `json:"markdown,omitempty"`
		Text     string `json:"text"`
	}

	sarifInvocation struct {
		CommandLine                        string              `json:"commandLine"`
		ExecutionSuccessful                bool                `json:"executionSuccessful"`
		NotificationConfigurationOverrides none                `json:"notificationConfigurationOverrides"`
		RuleConfigurationOverrides         none                `json:"ruleConfigurationOverrides"`
		ToolConfigurationNotifications     []sarifNotification `json:"toolConfigurationNotifications"`
		ToolExecutionNotifications         []sarifNotification `json:"toolExecutionNotifications"`
	}

	sarifNotification struct {
		AssociatedRule *sarifRuleReference `json:"associatedRule,omitempty"`
		Level          string              `json:"level"`
		Locations      []sarifLocation     `json:"locations"`
		Message        sarifMessage        `json:"message"`
	}

	// sarifRuleReference is a reportingDescriptorReference.
	sarifRuleReference struct {
		ID    string `json:"id"`
		Index int    `json:"index"`
	}

	sarifMessage struct {
		Arguments none   `json:"arguments"`
		Text      string `json:"text"`
	}

	sarifResult struct {
		PartialFingerprints map[string]string  `json:"partialFingerprints"`
		Attachments         none               `json:"attachments"`
		CodeFlows           none               `json:"codeFlows"`
		Fixes               none               `json:"fixes"`
		GraphTraversals     none               `json:"graphTraversals"`
		Graphs              none               `json:"graphs"`
		Kind                string             `json:"kind"`
		Level               string             `json:"level"`
		Locations           []sarifLocation    `json:"locations"`
		Message             sarifMessage       `json:"message"`
		Properties          *properties        `json:"properties,omitempty"`
		Rank                unset              `json:"rank"`
		RelatedLocations    []sarifLocation    `json:"relatedLocations"`
		RuleID              string             `json:"ruleId"`
		RuleIndex           int                `json:"ruleIndex"`
		Stacks              none               `json:"stacks"`
		Suppressions        []sarifSuppression `json:"suppressions,omitempty"`
		Taxa                none               `json:"taxa"`
	}

	sarifSuppression struct {
		Justification string `json:"justification"`
		Kind          string `json:"kind"`
	}

	sarifLocation struct {
		Annotations      none                   `json:"annotations"`
		ID               int                    `json:"id"`
		LogicalLocations []sarifLogicalLocation `json:"logicalLocations"`
		Message          *sarifMessage          `json:"message,omitempty"`
		PhysicalLocation sarifPhysicalLocation  `json:"physicalLocation"`
		Relationships    none                   `json:"relationships"`
	}

	sarifLogicalLocation struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Index              unset  `json:"index"`
		ParentIndex        unset  `json:"parentIndex"`
	}

	sarifPhysicalLocation struct {
		ArtifactLocation sarifArtifactLocation `json:"artifactLocation"`
		Region           sarifRegion           `json:"region"`
	}

	sarifArtifactLocation struct {
		Index     unset  `json:"index"`
		URI       string `json:"uri"`
		URIBaseID string `json:"uriBaseId,omitempty"`
	}

	sarifRegion struct {
		ByteOffset  unset `json:"byteOffset"`
		CharOffset  unset `json:"charOffset"`
		StartColumn int   `json:"startColumn,omitempty"`
		StartLine   int   `json:"startLine"`
	}
)

// none is a list that is always empty, yes a field that is always true.
type (
	none [0]struct{}
	yes  struct{}
)

// MarshalJSON writes true.
func (yes) MarshalJSON() ([]byte, error) { return []byte("true"), nil }

// unset is an index or a rank that was not set: -1 in SARIF.
type unset struct{}

// MarshalJSON writes -1.
func (unset) MarshalJSON() ([]byte, error) { return []byte("-1"), nil }

// properties is a property bag: values with names of winlab's own, and tags.
type properties struct {
	values map[string]any
	tags   []string
}

func (p *properties) add(name string, value any) {
	if p.values == nil {
		p.values = map[string]any{}
	}
	p.values[name] = value
}

// MarshalJSON writes the values beside the tags.
func (p properties) MarshalJSON() ([]byte, error) {
	all := map[string]any{}
	maps.Copy(all, p.values)
	if len(p.tags) > 0 {
		all["tags"] = p.tags
	}
	return json.Marshal(all)
}
