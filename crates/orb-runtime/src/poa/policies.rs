//! The set of policies of a POA: defaults and valid combinations.

use crate::poa::policy::{
    BidirectionalPolicy, IdAssignmentPolicy, IdUniquenessPolicy, ImplicitActivationPolicy, LifespanPolicy,
    Policy, RequestProcessingPolicy, ServantRetentionPolicy, ThreadModel, policy_id,
};

/// All policies of a POA.
///
/// `Policies::default()` are the policies of a POA that is created without a list of policies.
///
/// ```
/// # use orb_runtime::poa::*;
/// let policies =
///     Policies::from_list(&[LifespanPolicy::Persistent.into(), IdAssignmentPolicy::User.into()])?;
/// assert_eq!(policies.lifespan, LifespanPolicy::Persistent);
/// assert_eq!(policies.servant_retention, ServantRetentionPolicy::Retain);
///
/// let error = Policies::from_list(&[ServantRetentionPolicy::NonRetain.into()]).unwrap_err();
/// assert_eq!(error.index, 0);
/// # Ok::<(), InvalidPolicy>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Policies {
    /// The threads that run requests.
    pub thread: ThreadModel,
    /// The lifetime of references.
    pub lifespan: LifespanPolicy,
    /// Whether a servant may have several ids.
    pub id_uniqueness: IdUniquenessPolicy,
    /// The assignment of ids: by the program or by the POA.
    pub id_assignment: IdAssignmentPolicy,
    /// Whether a servant is activated when the program asks for its reference.
    pub implicit_activation: ImplicitActivationPolicy,
    /// Whether the POA has an active object map.
    pub servant_retention: ServantRetentionPolicy,
    /// The handling of a request whose object is not in the map.
    pub request_processing: RequestProcessingPolicy,
    /// Whether the POA lets peers call over connections that this ORB opened.
    pub bidirectional: BidirectionalPolicy,
}

/// A list of policies is invalid (`PortableServer::POA::InvalidPolicy`).
///
/// `Display` names the rejected policy of the list and the reason.
#[doc(alias = "PortableServer::POA::InvalidPolicy")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("policy {index} of the list, {policy}: {reason}")]
#[non_exhaustive]
pub struct InvalidPolicy {
    /// The index in the list of the policy at fault, counted from 0. If several are at fault, the last one.
    pub index: u16,
    policy: Policy,
    reason: &'static str,
}

struct Violation {
    rule: &'static str,
    policy_types: &'static [u32],
}

impl Policies {
    pub(crate) fn uses_servant_activator(&self) -> bool {
        self.request_processing == RequestProcessingPolicy::ServantManager && self.retains()
    }

    /// Returns the policies of the RootPOA.
    #[must_use]
    pub fn root() -> Self {
        Self { implicit_activation: ImplicitActivationPolicy::Implicit, ..Self::default() }
    }

    /// Returns the policies of the list, and defaults for the types that are missing from it.
    ///
    /// # Errors
    /// The list contains a type twice with different values, or the policies contradict each other.
    pub fn from_list(list: &[Policy]) -> Result<Self, InvalidPolicy> {
        let refused = |at: usize, policy, reason| InvalidPolicy {
            index: u16::try_from(at).unwrap_or(u16::MAX),
            policy,
            reason,
        };
        let mut policies = Self::default();
        let mut seen = 0_u64;
        for (at, &policy) in list.iter().enumerate() {
            let before = policies;
            let bit = match policy {
                Policy::Other { .. } => continue,
                known => 1 << known.id(),
            };
            policies.set(policy);
            if seen & bit != 0 && policies != before {
                return Err(refused(at, policy, "the list already contains another value of this type"));
            }
            seen |= bit;
        }
        let Some(Violation { rule, policy_types }) = policies.violation() else { return Ok(policies) };
        let last = list.iter().enumerate().rev().find(|(_, policy)| policy_types.contains(&policy.id()));
        // The defaults violate no rule, so the list contains a policy that the rule concerns.
        last.map_or(Ok(policies), |(at, &policy)| Err(refused(at, policy, rule)))
    }

    /// Sets one policy. Policies that do not apply to a POA are ignored.
    pub fn set(&mut self, policy: impl Into<Policy>) {
        match policy.into() {
            Policy::Thread(value) => self.thread = value,
            Policy::Lifespan(value) => self.lifespan = value,
            Policy::IdUniqueness(value) => self.id_uniqueness = value,
            Policy::IdAssignment(value) => self.id_assignment = value,
            Policy::ImplicitActivation(value) => self.implicit_activation = value,
            Policy::ServantRetention(value) => self.servant_retention = value,
            Policy::RequestProcessing(value) => self.request_processing = value,
            Policy::Bidirectional(value) => self.bidirectional = value,
            Policy::Other { .. } => {}
        }
    }

    /// Returns a list with one policy of each type, ordered by type number.
    #[must_use]
    pub fn to_list(&self) -> [Policy; 8] {
        [
            self.thread.into(),
            self.lifespan.into(),
            self.id_uniqueness.into(),
            self.id_assignment.into(),
            self.implicit_activation.into(),
            self.servant_retention.into(),
            self.request_processing.into(),
            self.bidirectional.into(),
        ]
    }

    /// Returns whether a POA can have this combination.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.violation().is_none()
    }

    /// Returns whether the POA has an active object map.
    #[must_use]
    pub fn retains(&self) -> bool {
        self.servant_retention == ServantRetentionPolicy::Retain
    }

    fn violation(&self) -> Option<Violation> {
        let implicit = self.implicit_activation == ImplicitActivationPolicy::Implicit;
        if !self.retains() && self.request_processing == RequestProcessingPolicy::ActiveObjectMapOnly {
            return Some(Violation {
                rule: "NON_RETAIN needs USE_DEFAULT_SERVANT or USE_SERVANT_MANAGER",
                policy_types: &[policy_id::SERVANT_RETENTION, policy_id::REQUEST_PROCESSING],
            });
        }
        if self.request_processing == RequestProcessingPolicy::DefaultServant
            && self.id_uniqueness != IdUniquenessPolicy::Multiple
        {
            return Some(Violation {
                rule: "USE_DEFAULT_SERVANT needs MULTIPLE_ID",
                policy_types: &[policy_id::REQUEST_PROCESSING, policy_id::ID_UNIQUENESS],
            });
        }
        if implicit && self.id_assignment != IdAssignmentPolicy::System {
            return Some(Violation {
                rule: "IMPLICIT_ACTIVATION needs SYSTEM_ID",
                policy_types: &[policy_id::IMPLICIT_ACTIVATION, policy_id::ID_ASSIGNMENT],
            });
        }
        if implicit && !self.retains() {
            return Some(Violation {
                rule: "IMPLICIT_ACTIVATION needs RETAIN",
                policy_types: &[policy_id::IMPLICIT_ACTIVATION, policy_id::SERVANT_RETENTION],
            });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poa::policy::InvalidPolicyValue;

    /// The valid (`.`) and invalid (`x`) combinations. The numbers of a line are the values of the servant
    /// retention and of the request processing. The first four columns are for IMPLICIT_ACTIVATION, and the
    /// last four for NO_IMPLICIT_ACTIVATION: for USER_ID and then for SYSTEM_ID, each with UNIQUE_ID and then
    /// with MULTIPLE_ID.
    const VERDICTS: [(&str, u32, u32); 6] = [
        ("xx.. ....", 0, 0),
        ("xxx. x.x.", 0, 1),
        ("xx.. ....", 0, 2),
        ("xxxx xxxx", 1, 0),
        ("xxxx x.x.", 1, 1),
        ("xxxx ....", 1, 2),
    ];

    fn verdict(policies: &Policies) -> char {
        let (line, ..) = VERDICTS
            .into_iter()
            .find(|(_, retention, processing)| {
                policies.servant_retention.value() == *retention
                    && policies.request_processing.value() == *processing
            })
            .unwrap();
        let column = policies.implicit_activation.value() * 5
            + policies.id_assignment.value() * 2
            + policies.id_uniqueness.value();
        line.chars().nth(column as usize).unwrap()
    }

    fn every_combination() -> Vec<Policies> {
        let types = [
            (policy_id::THREAD, 3),
            (policy_id::LIFESPAN, 2),
            (policy_id::ID_UNIQUENESS, 2),
            (policy_id::ID_ASSIGNMENT, 2),
            (policy_id::IMPLICIT_ACTIVATION, 2),
            (policy_id::SERVANT_RETENTION, 2),
            (policy_id::REQUEST_PROCESSING, 3),
            (policy_id::BIDIRECTIONAL, 2),
        ];
        let mut all = vec![Policies::default()];
        for (id, values) in types {
            all = (0..values)
                .flat_map(|value| {
                    all.iter().map(move |policies| {
                        let mut policies = *policies;
                        policies.set(Policy::from_value(id, value).unwrap());
                        policies
                    })
                })
                .collect();
        }
        all
    }

    // clause: poa.combination.non_retain_map_only, poa.combination.default_servant_unique, poa.combination.implicit_user_id, poa.combination.implicit_non_retain
    #[test]
    fn every_combination_has_the_verdict_of_the_table() {
        let all = every_combination();
        assert_eq!(all.len(), 3 * 2 * 2 * 2 * 2 * 2 * 3 * 2);
        for policies in all {
            let list = policies.to_list();
            match (verdict(&policies), Policies::from_list(&list)) {
                ('.', Ok(made)) => assert_eq!(made, policies),
                ('x', Err(InvalidPolicy { index, policy, .. })) => {
                    assert_eq!(policy, list[usize::from(index)]);
                    // The policy takes part in the violation: another value of its type satisfies the rule.
                    let rule = policies.violation().map(|violation| violation.rule);
                    let is_at_fault =
                        (0..3).filter_map(|value| Policy::from_value(policy.id(), value).ok()).any(|other| {
                            let mut others = policies;
                            others.set(other);
                            others.violation().map(|violation| violation.rule) != rule
                        });
                    assert!(is_at_fault, "{list:?}: {policy}");
                }
                (expected, got) => panic!("{list:?}: {expected} in the table, but {got:?}"),
            }
            assert_eq!(policies.is_valid(), verdict(&policies) == '.');
        }
    }

    // clause: poa.combination.index
    #[test]
    fn invalid_policy_has_the_index_of_the_last_policy_at_fault() {
        use Policy::*;
        let unique = IdUniqueness(IdUniquenessPolicy::Unique);
        let default_servant = RequestProcessing(RequestProcessingPolicy::DefaultServant);
        let non_retain = ServantRetention(ServantRetentionPolicy::NonRetain);
        let implicit = ImplicitActivation(ImplicitActivationPolicy::Implicit);
        let user = IdAssignment(IdAssignmentPolicy::User);
        let persistent = Lifespan(LifespanPolicy::Persistent);
        let manager = RequestProcessing(RequestProcessingPolicy::ServantManager);
        for (list, index, text) in [
            (
                &[non_retain][..],
                0,
                "policy 0 of the list, NON_RETAIN: NON_RETAIN needs USE_DEFAULT_SERVANT or USE_SERVANT_MANAGER",
            ),
            (
                &[default_servant, persistent],
                0,
                "policy 0 of the list, USE_DEFAULT_SERVANT: USE_DEFAULT_SERVANT needs MULTIPLE_ID",
            ),
            (
                &[persistent, default_servant, unique],
                2,
                "policy 2 of the list, UNIQUE_ID: USE_DEFAULT_SERVANT needs MULTIPLE_ID",
            ),
            (
                &[user, persistent, implicit],
                2,
                "policy 2 of the list, IMPLICIT_ACTIVATION: IMPLICIT_ACTIVATION needs SYSTEM_ID",
            ),
            (
                &[implicit, manager, non_retain, persistent],
                2,
                "policy 2 of the list, NON_RETAIN: IMPLICIT_ACTIVATION needs RETAIN",
            ),
        ] {
            let error = Policies::from_list(list).unwrap_err();
            assert_eq!((error.index, error.to_string().as_str()), (index, text));
        }
    }

    // clause: poa.combination.twice
    #[test]
    fn list_with_two_values_of_one_type_is_invalid() {
        let (multiple, unique) = (IdUniquenessPolicy::Multiple.into(), IdUniquenessPolicy::Unique.into());
        let persistent = LifespanPolicy::Persistent.into();
        let twice = Policies::from_list(&[multiple, persistent, multiple]).unwrap();
        assert_eq!(twice.id_uniqueness, IdUniquenessPolicy::Multiple);
        for (list, index) in [
            ([multiple, unique, persistent], 1),
            // An explicit default is a value like any other.
            ([unique, persistent, multiple], 2),
        ] {
            let error = Policies::from_list(&list).unwrap_err();
            assert_eq!(error.index, index);
            assert!(error.to_string().contains("already contains another value"), "{error}");
        }
    }

    // clause: poa.combination.foreign_type
    #[test]
    fn types_that_do_not_apply_to_a_poa_are_ignored() {
        // Types of CORBA Messaging, of Real-time CORBA, and of a vendor.
        for id in [23, 24, 35, 40, 45, 61, 0x4154_5401] {
            let other = Policy::from_value(id, 1).unwrap();
            assert_eq!(other, Policy::Other { id, value: 1 });
            let again = Policy::from_value(id, 2).unwrap();
            assert_eq!(Policies::from_list(&[other, again]), Ok(Policies::default()));
        }
    }

    // clause: poa.policy.thread.default, poa.policy.lifespan.default, poa.policy.id_uniqueness.default, poa.policy.id_assignment.default, poa.policy.implicit_activation.default, poa.policy.implicit_activation.root, poa.policy.servant_retention.default, poa.policy.request_processing.default
    #[test]
    fn missing_policies_have_defaults_and_the_root_poa_activates_implicitly() {
        let names = |policies: Policies| policies.to_list().map(|policy| policy.to_string()).join(" ");
        let common =
            ["ORB_CTRL_MODEL TRANSIENT UNIQUE_ID SYSTEM_ID", "RETAIN USE_ACTIVE_OBJECT_MAP_ONLY NORMAL"];
        let child = Policies::from_list(&[]).unwrap();
        assert_eq!(names(child), common.join(" NO_IMPLICIT_ACTIVATION "));
        assert_eq!(names(Policies::root()), common.join(" IMPLICIT_ACTIVATION "));
        assert!(child.is_valid() && Policies::root().is_valid());
    }

    #[test]
    fn types_and_values_have_the_numbers_of_the_idl() {
        let table = [
            (16, 0, "ORB_CTRL_MODEL"),
            (16, 1, "SINGLE_THREAD_MODEL"),
            (16, 2, "MAIN_THREAD_MODEL"),
            (17, 0, "TRANSIENT"),
            (17, 1, "PERSISTENT"),
            (18, 0, "UNIQUE_ID"),
            (18, 1, "MULTIPLE_ID"),
            (19, 0, "USER_ID"),
            (19, 1, "SYSTEM_ID"),
            (20, 0, "IMPLICIT_ACTIVATION"),
            (20, 1, "NO_IMPLICIT_ACTIVATION"),
            (21, 0, "RETAIN"),
            (21, 1, "NON_RETAIN"),
            (22, 0, "USE_ACTIVE_OBJECT_MAP_ONLY"),
            (22, 1, "USE_DEFAULT_SERVANT"),
            (22, 2, "USE_SERVANT_MANAGER"),
            (37, 0, "NORMAL"),
            (37, 1, "BOTH"),
        ];
        for id in [16, 17, 18, 19, 20, 21, 22, 37] {
            for value in 0..5 {
                let policy = Policy::from_value(id, value);
                match table.iter().find(|(i, v, _)| (*i, *v) == (id, value)) {
                    Some((.., name)) => {
                        let policy = policy.unwrap();
                        assert_eq!(policy.to_string(), *name);
                        assert_eq!((policy.id(), policy.value()), (id, value));
                    }
                    None => assert_eq!(policy, Err(InvalidPolicyValue { id, value })),
                }
            }
        }
        assert_eq!(ThreadModel::ALL.len(), 3);
    }
}
