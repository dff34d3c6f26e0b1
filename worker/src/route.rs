//! Paths: which are served, and what to say about those that are not.

/// A method that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `PublishService/Publish`
    Publish,
    /// `QueryService/Query`
    Query,
    /// `QueryService/QueryNewest`
    QueryNewest,
    /// `IdentityService/GetInboxIds`
    GetInboxIds,
    /// `IdentityService/VerifySmartContractWalletSignatures`
    VerifySmartContractWalletSignatures,
    /// `grpc.health.v1.Health/Check`
    HealthCheck,
}

impl Method {
    /// Service and method, for counters and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Publish => "PublishService/Publish",
            Self::Query => "QueryService/Query",
            Self::QueryNewest => "QueryService/QueryNewest",
            Self::GetInboxIds => "IdentityService/GetInboxIds",
            Self::VerifySmartContractWalletSignatures => {
                "IdentityService/VerifySmartContractWalletSignatures"
            }
            Self::HealthCheck => "Health/Check",
        }
    }
}

/// Where a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// To a method with one request and one answer.
    Served(Method),
    /// To `SubscriptionService/Subscribe`.
    Subscribe,
    /// To `SubscriptionService/SubscribeStatic`.
    SubscribeStatic,
    /// To a method of the API that this build does not serve; the text says what to use.
    NotBuilt(&'static str),
    /// To the page for operators.
    Status,
    /// To the repair of the Directories, for operators.
    Repair,
    /// Nowhere.
    Unknown,
}

/// The path of the page for operators. No gRPC path begins like it.
pub const STATUS_PATH: &str = "/-/status";

/// The path of the repair.
pub const REPAIR_PATH: &str = "/-/repair";

/// Finds the route of a request's path.
pub fn route(path: &str) -> Route {
    match path {
        "/xmtp.backend.v1.PublishService/Publish" => Route::Served(Method::Publish),
        "/xmtp.backend.v1.QueryService/Query" => Route::Served(Method::Query),
        "/xmtp.backend.v1.QueryService/QueryNewest" => Route::Served(Method::QueryNewest),
        "/grpc.health.v1.Health/Check" => Route::Served(Method::HealthCheck),
        "/grpc.health.v1.Health/Watch" | "/grpc.health.v1.Health/List" => {
            Route::NotBuilt("this build does not serve it: call grpc.health.v1.Health/Check")
        }
        "/xmtp.backend.v1.SubscriptionService/Subscribe" => Route::Subscribe,
        "/xmtp.backend.v1.SubscriptionService/SubscribeStatic" => Route::SubscribeStatic,
        "/xmtp.backend.v1.IdentityService/GetInboxIds" => Route::Served(Method::GetInboxIds),
        "/xmtp.backend.v1.IdentityService/VerifySmartContractWalletSignatures" => {
            Route::Served(Method::VerifySmartContractWalletSignatures)
        }
        "/xmtp.backend.v1.ConfigurationService/GetConfiguration" => Route::NotBuilt(
            "this build does not publish its limits: the defaults of the API apply unless its operator says otherwise",
        ),
        "/xmtp.backend.v1.NotificationService/Register"
        | "/xmtp.backend.v1.NotificationService/Unregister"
        | "/xmtp.backend.v1.NotificationService/UpdateSubscriptions" => {
            Route::NotBuilt("this build sends no notifications: call QueryService/Query")
        }
        "/xmtp.backend.v1.AttachmentService/CreateUpload" => {
            Route::NotBuilt("this build stores no attachments: upload them elsewhere and send a reference")
        }
        STATUS_PATH => Route::Status,
        REPAIR_PATH => Route::Repair,
        _ => Route::Unknown,
    }
}

/// The path of a URL as the platform gives it: scheme, host, path, query.
pub fn path_of(url: &str) -> &str {
    let after_scheme = url.find("://").map_or(url, |at| &url[at + 3..]);
    let path = after_scheme.find('/').map_or("/", |at| &after_scheme[at..]);
    path.find(['?', '#']).map_or(path, |at| &path[..at])
}

/// The value of `name` in the query of a URL, as it stands there; empty when there is none.
pub fn query_of<'a>(url: &'a str, name: &str) -> &'a str {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    let mut values = query.split('&').filter_map(|pair| pair.split_once('='));
    values.find(|(key, _)| *key == name).map_or("", |(_, value)| value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_path_of_a_url_is_what_stands_between_host_and_query() {
        for (url, path) in [
            ("http://127.0.0.1:8787/a.B/C", "/a.B/C"),
            ("https://host/-/status?x=/y", "/-/status"),
            ("https://host/a#b", "/a"),
            ("https://host", "/"),
            ("", "/"),
        ] {
            assert_eq!(path_of(url), path);
        }
    }

    #[test]
    fn a_value_of_the_query_is_found_by_its_name() {
        for (url, value) in [
            ("https://host/-/repair?from=1-02", "1-02"),
            ("https://host/-/repair?x=y&from=1-02#z", "1-02"),
            ("https://host/-/repair?xfrom=1", ""),
            ("https://host/-/repair", ""),
        ] {
            assert_eq!(query_of(url, "from"), value);
        }
    }

    #[test]
    fn paths_are_matched_exactly() {
        assert_eq!(route("/xmtp.backend.v1.QueryService/Query"), Route::Served(Method::Query));
        for path in [
            "/xmtp.backend.v1.QueryService/query",
            "/xmtp.backend.v1.QueryService/Query/",
            "//xmtp.backend.v1.QueryService/Query",
            "/xmtp.backend.v1.QueryService/Get",
            "/",
        ] {
            assert_eq!(route(path), Route::Unknown, "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_url_has_a_path(url: String) {
            prop_assert!(path_of(&url).starts_with('/'));
        }
    }
}
