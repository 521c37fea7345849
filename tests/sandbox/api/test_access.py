"""Who a request is from, and what that identity may do."""

from __future__ import annotations

from typing import Any

import pytest
from multidict import CIMultiDict

from sandbox.api.stored import Stored
from winready_sandbox.api.authn import Authenticator, impersonated
from winready_sandbox.api.bootstrap import fill
from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.escalation import check_grant
from winready_sandbox.api.identity import ADMIN, ANONYMOUS, AUTHENTICATED, User, service_account_user
from winready_sandbox.api.rbac import Authorizer, Request
from winready_sandbox.api.reviews import Reviews
from winready_sandbox.api.tokens import TokenIssuer
from winready_sandbox.pki import new_key

RBAC = "rbac.authorization.k8s.io"
JANE = User("jane", ("dev", AUTHENTICATED))
NODE = User("system:node:win-1", ("system:nodes", AUTHENTICATED))


@pytest.fixture
def stored() -> Stored:
    """A cluster with its default roles, a service account and a pod of it."""
    stored = Stored()
    fill(stored, service_ip="10.96.0.1", server_ip="127.0.0.1", server_port=6443, ca=b"pem")
    stored.create("serviceaccounts", {"metadata": {"name": "default"}}, "team")
    stored.create("nodes", {"metadata": {"name": "win-1"}})
    pod = {"metadata": {"name": "web"}, "spec": {"serviceAccountName": "default", "nodeName": "win-1"}}
    stored.create("pods", pod, "team")
    return stored


@pytest.fixture
def issuer(stored: Stored) -> TokenIssuer:
    return TokenIssuer(new_key(), stored)


@pytest.fixture
def authenticator(issuer: TokenIssuer) -> Authenticator:
    return Authenticator(issuer, {"s3cret": ADMIN})


@pytest.fixture
def authorizer(stored: Stored) -> Authorizer:
    return Authorizer(stored)


def bind(stored: Stored, role: str, subject: dict[str, str], namespace: str = "", kind: str = "ClusterRole") -> None:
    """Bind a role to a subject."""
    resource = "rolebindings" if namespace else "clusterrolebindings"
    reference = {"apiGroup": RBAC, "kind": kind, "name": role}
    obj = {"metadata": {"name": f"{role}-{subject['name']}"}, "roleRef": reference, "subjects": [subject]}
    stored.create(resource, obj, namespace)


def bearer(token: str) -> CIMultiDict[str]:
    return CIMultiDict({"Authorization": f"Bearer {token}"})


# Authentication


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_bearer_token_is_accepted_in_any_letter_case_of_the_scheme(authenticator: Authenticator, scheme: str) -> None:
    assert authenticator.user(CIMultiDict({"Authorization": f"{scheme} s3cret"}), None) == ADMIN


def test_no_credentials_is_anonymous_and_wrong_ones_are_401(authenticator: Authenticator) -> None:
    assert authenticator.user(CIMultiDict(), None) == ANONYMOUS
    with pytest.raises(ApiError) as caught:
        authenticator.user(bearer("nope"), None)
    assert caught.value.status()["code"] == 401
    assert caught.value.message == "Unauthorized"


def test_client_certificate_names_user_and_groups(authenticator: Authenticator) -> None:
    subject = ((("organizationName", "dev"),), (("organizationName", "ops"),), (("commonName", "jane"),))
    assert authenticator.user(CIMultiDict(), {"subject": subject}) == User("jane", ("dev", "ops", AUTHENTICATED))


def test_service_account_token_tells_account_pod_and_node(
    issuer: TokenIssuer, authenticator: Authenticator, stored: Stored
) -> None:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "web"}
    answer = issuer.request("team", "default", {"spec": {"boundObjectRef": reference}})
    user = authenticator.user(bearer(answer["status"]["token"]), None)
    assert user.name == "system:serviceaccount:team:default"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:team", AUTHENTICATED)
    assert user.uid == stored.get("serviceaccounts", "default", "team")["metadata"]["uid"]
    assert user.extra["authentication.kubernetes.io/pod-name"] == ["web"]
    assert user.extra["authentication.kubernetes.io/node-name"] == ["win-1"]


@pytest.mark.parametrize(("resource", "name"), [("pods", "web"), ("serviceaccounts", "default")])
@pytest.mark.parametrize("recreated", [False, True])
def test_token_dies_with_what_it_is_bound_to(
    issuer: TokenIssuer, authenticator: Authenticator, stored: Stored, resource: str, name: str, recreated: bool
) -> None:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "web"}
    token = issuer.request("team", "default", {"spec": {"boundObjectRef": reference}})["status"]["token"]
    old = stored.get(resource, name, "team")
    stored.delete(resource, name, "team")
    if recreated:
        stored.create(resource, {**old, "metadata": {"name": name}}, "team")
    with pytest.raises(ApiError, match="Unauthorized"):
        authenticator.user(bearer(token), None)


def test_token_for_another_audience_opens_nothing_here(issuer: TokenIssuer, authenticator: Authenticator) -> None:
    token = issuer.request("team", "default", {"spec": {"audiences": ["vault"]}})["status"]["token"]
    with pytest.raises(ApiError, match="Unauthorized"):
        authenticator.user(bearer(token), None)
    assert authenticator.token_user(token, ["vault", "other"])[1] == ["vault"]


def test_expired_token_is_refused_a_minute_later(
    issuer: TokenIssuer, authenticator: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = issuer.request("team", "default", {"spec": {"expirationSeconds": 600}})["status"]["token"]
    import time

    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 659)
    assert authenticator.user(bearer(token), None).name == "system:serviceaccount:team:default"
    monkeypatch.setattr(time, "time", lambda: now + 662)
    with pytest.raises(ApiError, match="Unauthorized"):
        authenticator.user(bearer(token), None)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_tampered_token_is_refused(issuer: TokenIssuer, authenticator: Authenticator, position: int) -> None:
    parts = issuer.request("team", "default", {})["status"]["token"].split(".")
    parts[position] = ("A" if parts[position][0] != "A" else "B") + parts[position][1:]
    with pytest.raises(ApiError, match="Unauthorized"):
        authenticator.user(bearer(".".join(parts)), None)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"expirationSeconds": 10}, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": 2**33}, "may not specify a duration larger than 2^32 seconds"),
        ({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "gone"}}, 'pods "gone" not found'),
        ({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "x"}}, "does not match the UID"),
        ({"boundObjectRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}, "cannot bind token"),
    ],
)
def test_token_request_that_makes_no_sense(issuer: TokenIssuer, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        issuer.request("team", "default", {"spec": spec})
    assert message in caught.value.message


def test_token_is_bound_only_to_pods_of_its_account(issuer: TokenIssuer, stored: Stored) -> None:
    stored.create("serviceaccounts", {"metadata": {"name": "other"}}, "team")
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "web"}
    with pytest.raises(ApiError, match="different serviceaccount name"):
        issuer.request("team", "other", {"spec": {"boundObjectRef": reference}})


def test_published_key_verifies_tokens(issuer: TokenIssuer) -> None:
    import base64
    import json

    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    def decode(text: str) -> bytes:
        return base64.urlsafe_b64decode(text + "==")

    (key,) = issuer.jwks()["keys"]
    x, y = (int.from_bytes(decode(key[axis])) for axis in "xy")
    public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    header, claims, signature = issuer.request("team", "default", {})["status"]["token"].split(".")
    raw = decode(signature)
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    public.verify(der, f"{header}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
    assert json.loads(decode(header)) == {"alg": "ES256", "kid": key["kid"]}
    assert issuer.openid_configuration("https://127.0.0.1:1")["jwks_uri"] == "https://127.0.0.1:1/openid/v1/jwks"


# Impersonation


def test_admin_may_act_as_another(authorizer: Authorizer) -> None:
    headers = CIMultiDict(
        [("Impersonate-User", "jane"), ("Impersonate-Group", "dev"), ("Impersonate-Extra-Scope", "a")]
    )
    assert impersonated(ADMIN, headers, authorizer) == User("jane", ("dev", AUTHENTICATED), "", {"scope": ["a"]})
    account = impersonated(ADMIN, CIMultiDict({"Impersonate-User": "system:serviceaccount:team:default"}), authorizer)
    assert account.groups == service_account_user("team", "default").groups


def test_impersonation_needs_the_right_for_each_group(authorizer: Authorizer, stored: Stored) -> None:
    rules = [{"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"]}]
    stored.create("clusterroles", {"metadata": {"name": "as-bob"}, "rules": rules})
    bind(stored, "as-bob", {"kind": "User", "name": "jane"})
    assert impersonated(JANE, CIMultiDict({"Impersonate-User": "bob"}), authorizer).name == "bob"
    with pytest.raises(ApiError, match='cannot impersonate resource "groups" in API group "" at the cluster scope'):
        impersonated(JANE, CIMultiDict({"Impersonate-User": "bob", "Impersonate-Group": "ops"}), authorizer)
    with pytest.raises(ApiError, match="without impersonating a user"):
        impersonated(JANE, CIMultiDict({"Impersonate-Group": "ops"}), authorizer)


# Authorization


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            Request("list", "", "pods", namespace="team"),
            'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "team"',
        ),
        (
            Request("get", "apps", "deployments", "scale", "team", "web"),
            'deployments.apps "web" is forbidden: User "jane" cannot get resource "deployments/scale" '
            'in API group "apps" in the namespace "team"',
        ),
        (
            Request("list", "", "nodes"),
            'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope',
        ),
        (Request("get", path="/metrics"), 'forbidden: User "jane" cannot get path "/metrics"'),
    ],
)
def test_refusal_reads_like_the_real_servers(authorizer: Authorizer, request_: Request, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        authorizer.require(JANE, request_)
    assert caught.value.message == message
    assert caught.value.code == 403


def test_binding_to_a_missing_role_is_named_in_the_refusal(authorizer: Authorizer, stored: Stored) -> None:
    bind(stored, "ghost", {"kind": "User", "name": "jane"})
    with pytest.raises(ApiError, match=r'RBAC: clusterrole\.rbac\.authorization.k8s\.io "ghost" not found'):
        authorizer.require(JANE, Request("list", "", "nodes"))


@pytest.mark.parametrize(
    ("role", "verb", "group", "resource", "expected"),
    [
        ("view", "list", "", "pods", True),
        ("view", "get", "", "pods/log", True),
        ("view", "get", "", "secrets", False),
        ("view", "create", "", "pods", False),
        ("edit", "create", "", "pods/exec", True),
        ("edit", "get", "", "secrets", True),
        ("edit", "list", "apps", "deployments", True),
        ("edit", "create", RBAC, "roles", False),
        ("admin", "create", RBAC, "roles", True),
        ("admin", "delete", "apps", "deployments", True),
        ("admin", "update", "", "resourcequotas", False),
        ("cluster-admin", "anything", "example.com", "things", True),
    ],
)
@pytest.mark.parametrize(
    "subject", [{"kind": "User", "name": "jane"}, {"kind": "Group", "name": "dev"}], ids=["user", "group"]
)
def test_default_roles_in_a_namespace(
    authorizer: Authorizer,
    stored: Stored,
    subject: dict[str, str],
    role: str,
    verb: str,
    group: str,
    resource: str,
    expected: bool,
) -> None:
    plural, _, subresource = resource.partition("/")
    bind(stored, role, subject, "team")
    assert authorizer.allowed(JANE, Request(verb, group, plural, subresource, "team")).allowed is expected
    assert not authorizer.allowed(JANE, Request(verb, group, plural, subresource, "elsewhere")).allowed


def test_binding_counts_as_soon_as_it_is_written_and_until_it_is_gone(authorizer: Authorizer, stored: Stored) -> None:
    wish = Request("list", "", "pods", namespace="team")
    assert not authorizer.allowed(JANE, wish).allowed
    bind(stored, "view", {"kind": "User", "name": "jane"}, "team")
    decision = authorizer.allowed(JANE, wish)
    assert decision.reason == 'RBAC: allowed by RoleBinding "view-jane/team" of ClusterRole "view" to User "jane"'
    stored.delete("rolebindings", "view-jane", "team")
    assert not authorizer.allowed(JANE, wish).allowed


def test_service_account_subject(authorizer: Authorizer, stored: Stored) -> None:
    bind(stored, "view", {"kind": "ServiceAccount", "name": "default", "namespace": "team"})
    wish = Request("list", "", "pods", namespace="anywhere")
    assert authorizer.allowed(service_account_user("team", "default"), wish).allowed
    assert not authorizer.allowed(service_account_user("other", "default"), wish).allowed


@pytest.mark.parametrize(
    ("rule", "request_", "expected"),
    [
        ({"resources": ["pods"], "resourceNames": ["a"]}, Request("get", "", "pods", name="a"), True),
        ({"resources": ["pods"], "resourceNames": ["a"]}, Request("get", "", "pods", name="b"), False),
        ({"resources": ["pods"], "resourceNames": ["a"]}, Request("get", "", "pods"), False),
        ({"resources": ["pods"]}, Request("get", "", "pods", "log"), False),
        ({"resources": ["*/log"]}, Request("get", "", "pods", "log"), True),
        ({"resources": ["*"]}, Request("get", "", "pods", "log"), True),
        ({"resources": ["pods"]}, Request("get", "apps", "pods"), False),
        ({"nonResourceURLs": ["/metrics/*"]}, Request("get", path="/metrics/slis"), True),
        ({"nonResourceURLs": ["/metrics"]}, Request("get", path="/metrics/slis"), False),
        ({"resources": ["*"]}, Request("get", path="/metrics"), False),
    ],
)
def test_what_a_rule_covers(
    authorizer: Authorizer, stored: Stored, rule: dict[str, Any], request_: Request, expected: bool
) -> None:
    stored.create("clusterroles", {"metadata": {"name": "r"}, "rules": [{"verbs": ["get"], "apiGroups": [""], **rule}]})
    bind(stored, "r", {"kind": "User", "name": "jane"})
    assert authorizer.allowed(JANE, request_).allowed is expected


def test_node_has_the_rights_of_a_node_and_no_more(authorizer: Authorizer) -> None:
    assert authorizer.allowed(NODE, Request("patch", "", "nodes", "status", name="win-1")).allowed
    assert authorizer.allowed(NODE, Request("create", "", "serviceaccounts", "token", "team", "default")).allowed
    assert not authorizer.allowed(NODE, Request("delete", "", "nodes", name="win-1")).allowed
    assert not authorizer.allowed(User("system:node:win-1"), Request("list", "", "services")).allowed


@pytest.mark.parametrize(
    ("user", "path", "expected"),
    [
        (ANONYMOUS, "/version", True),
        (ANONYMOUS, "/readyz", True),
        (ANONYMOUS, "/api", False),
        (JANE, "/apis/apps/v1", True),
        (JANE, "/openapi/v3", True),
        (JANE, "/openid/v1/jwks", False),
        (service_account_user("team", "default"), "/openid/v1/jwks", True),
    ],
)
def test_paths_that_everybody_may_read(authorizer: Authorizer, user: User, path: str, expected: bool) -> None:
    assert authorizer.allowed(user, Request("get", path=path)).allowed is expected


# Escalation


def role(name: str, *verbs: str) -> dict[str, Any]:
    rules = [{"verbs": list(verbs), "apiGroups": [""], "resources": ["pods"]}]
    return {"metadata": {"name": name}, "rules": rules}


def test_nobody_grants_more_than_they_hold(authorizer: Authorizer, stored: Stored) -> None:
    bind(stored, "admin", {"kind": "User", "name": "jane"}, "team")
    check_grant(authorizer, JANE, "roles", "team", role("fine", "get", "list"))
    with pytest.raises(ApiError) as caught:
        check_grant(authorizer, JANE, "roles", "team", role("greedy", "*"))
    assert caught.value.message == (
        'roles.rbac.authorization.k8s.io "greedy" is forbidden: user "jane" (groups=["dev" "system:authenticated"]) is '
        'attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["*"]}'
    )
    check_grant(authorizer, ADMIN, "roles", "team", role("greedy", "*"))


def test_binding_needs_the_rights_or_the_verb_bind(authorizer: Authorizer, stored: Stored) -> None:
    bind(stored, "admin", {"kind": "User", "name": "jane"}, "team")
    binding = {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}}
    with pytest.raises(ApiError, match="not currently held"):
        check_grant(authorizer, JANE, "rolebindings", "team", binding)
    rules = [{"verbs": ["bind"], "apiGroups": [RBAC], "resources": ["clusterroles"]}]
    stored.create("clusterroles", {"metadata": {"name": "binder"}, "rules": rules})
    bind(stored, "binder", {"kind": "User", "name": "jane"})
    check_grant(authorizer, JANE, "rolebindings", "team", binding)


# Reviews


@pytest.fixture
def reviews(authenticator: Authenticator, authorizer: Authorizer) -> Reviews:
    return Reviews(authenticator, authorizer)


def test_access_reviews_answer_for_oneself_and_for_others(reviews: Reviews, stored: Stored) -> None:
    bind(stored, "view", {"kind": "Group", "name": "dev"}, "team")
    attributes = {"verb": "list", "resource": "pods", "namespace": "team"}
    own = reviews.create("selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}}, JANE)
    assert own["status"]["allowed"] is True
    assert own["kind"] == "SelfSubjectAccessReview"
    spec = {"resourceAttributes": attributes, "user": "bob"}
    assert reviews.create("subjectaccessreviews", {"spec": spec}, ADMIN)["status"] == {"allowed": False}
    spec = {"resourceAttributes": attributes, "user": "bob", "groups": ["dev"]}
    local = reviews.create("localsubjectaccessreviews", {"spec": spec}, ADMIN, "team")
    assert local["status"]["reason"].endswith('of ClusterRole "view" to Group "dev"')
    spec = {"nonResourceAttributes": {"verb": "get", "path": "/version"}, "groups": ["system:unauthenticated"]}
    assert reviews.create("subjectaccessreviews", {"spec": spec}, ADMIN)["status"]["allowed"] is True


@pytest.mark.parametrize(
    ("plural", "spec", "message"),
    [
        ("selfsubjectaccessreviews", {}, "exactly one of nonResourceAttributes or resourceAttributes"),
        ("subjectaccessreviews", {"resourceAttributes": {"verb": "get"}}, "at least one of user or group"),
        (
            "localsubjectaccessreviews",
            {"user": "bob", "resourceAttributes": {"verb": "get", "namespace": "x"}},
            "must match metadata.namespace",
        ),
        ("tokenreviews", {}, "token is required"),
        ("selfsubjectrulesreviews", {}, "no namespace on request"),
    ],
)
def test_review_that_asks_nothing_sensible(reviews: Reviews, plural: str, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        reviews.create(plural, {"spec": spec}, ADMIN, "team")
    assert message in caught.value.message


def test_token_review(reviews: Reviews, issuer: TokenIssuer) -> None:
    token = issuer.request("team", "default", {"spec": {"audiences": ["vault"]}})["status"]["token"]
    good = reviews.create("tokenreviews", {"spec": {"token": token, "audiences": ["vault"]}}, ADMIN)["status"]
    assert good["authenticated"] is True
    assert good["user"]["username"] == "system:serviceaccount:team:default"
    assert good["audiences"] == ["vault"]
    bad = reviews.create("tokenreviews", {"spec": {"token": token}}, ADMIN)["status"]
    assert bad["authenticated"] is False
    assert "audience" in bad["error"]


def test_rules_review_and_whoami(reviews: Reviews, stored: Stored) -> None:
    bind(stored, "view", {"kind": "Group", "name": "dev"}, "team")
    status = reviews.create("selfsubjectrulesreviews", {"spec": {"namespace": "team"}}, JANE)["status"]
    assert any("pods/log" in rule["resources"] for rule in status["resourceRules"])
    assert any("/version" in rule["nonResourceURLs"] for rule in status["nonResourceRules"])
    assert status["incomplete"] is False
    whoami = reviews.create("selfsubjectreviews", {}, JANE)
    assert whoami["status"]["userInfo"] == {"username": "jane", "groups": ["dev", AUTHENTICATED]}
