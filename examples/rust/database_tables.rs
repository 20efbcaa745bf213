//! Tables of a SQLite database: no function is written, clients send no SQL, and one column is not served.
//!
//! db:///shop/customers             the rows, a page at a time; `?after` and `?rows` say which
//! db:///shop/order_lines/{key}     one row, such as db:///shop/order_lines/2,1; completes the keys, is watched
//! db:///shop/query/by_city{?city}  what a statement selects

use mcp_resources::ResourceServer;
use mcp_resources::providers::db;
use mcp_resources_examples::data;
use std::error::Error;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).unwrap_or_else(|| data("shop.db").display().to_string());
    let shop = db::Database::new(format!("sqlite:{file}"))
        .tables(["customers", "order_lines"])
        .columns_deny(["password"])
        .view("by_city", "SELECT id, name FROM customers WHERE city = :city ORDER BY name");
    let server = ResourceServer::builder("shop", "1.0.0")
        .mount(db::Db::new(db::DbOptions::new().database("shop", shop))?)
        .build()?;
    Ok(server.run_stdio().await?)
}
