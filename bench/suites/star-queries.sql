-- One query a paragraph, for bench/workloads star.  The answers are PostgreSQL's; none is to take longer than
-- with gpusort.enable = off.
-- returns by store: three-column join of the facts, a month of one
SELECT s_name, sum(CASE WHEN r.date_sk - s.date_sk <= 30 THEN 1 ELSE 0 END), sum(CASE WHEN r.date_sk - s.date_sk > 30 THEN 1 ELSE 0 END) FROM sales s, returns r, stores, dates d1, dates d2 WHERE d2.yr = 2021 AND d2.mon = 8 AND s.ticket = r.ticket AND s.item_sk = r.item_sk AND s.date_sk = d1.d_sk AND r.date_sk = d2.d_sk AND s.cust_sk = r.cust_sk AND s.store_sk = s_sk GROUP BY s_name, s_sk ORDER BY s_name LIMIT 100;

-- items of four makers in stock that were sold
SELECT i_id, brand, i.price FROM items i, inventory v, dates, sales s WHERE i.price BETWEEN 62 AND 92 AND v.item_sk = i_sk AND d_sk = v.date_sk AND d BETWEEN date '2021-05-25' AND date '2021-07-24' AND maker IN (129, 271, 421, 823) AND on_hand BETWEEN 100 AND 500 AND s.item_sk = i_sk GROUP BY i_id, brand, i.price ORDER BY i_id LIMIT 100;

-- brands of one month by customers of other regions than the store
SELECT brand, maker, sum(s.price) p FROM dates, sales s, items, customers, addresses, stores WHERE d_sk = date_sk AND item_sk = i_sk AND maker = 8 AND mon = 11 AND yr = 2021 AND cust_sk = c_sk AND addr_sk = a_sk AND substr(zip, 1, 2) <> lpad(s_sk::text, 2, '0') AND store_sk = s_sk GROUP BY brand, maker ORDER BY p DESC, brand LIMIT 100;

-- averages by item for one kind of customer
SELECT i_id, avg(qty), avg(s.list), avg(discount), avg(s.price) FROM sales s, customers c, dates, items WHERE date_sk = d_sk AND item_sk = i_sk AND cust_sk = c_sk AND c.demo_sk % 70 = 1 AND yr = 2022 GROUP BY i_id ORDER BY i_id LIMIT 100;

-- margin by category and store, rolled up
SELECT category, s_name, sum(profit) / sum(s.price), grouping(category) + grouping(s_name) g FROM sales s, dates, items, stores WHERE yr = 2021 AND d_sk = date_sk AND i_sk = item_sk AND s_sk = store_sk AND s_state = 'TN' GROUP BY ROLLUP (category, s_name) ORDER BY g DESC, category LIMIT 100;

-- sales by zip of one quarter
SELECT zip, sum(s.price) FROM sales s, customers, addresses, dates WHERE cust_sk = c_sk AND addr_sk = a_sk AND (substr(zip, 1, 5) IN ('00085', '31676', '03592', '02377', '05841') OR state IN ('CA', 'DA', 'GB') OR s.price > 199) AND date_sk = d_sk AND mon BETWEEN 1 AND 3 AND yr = 2023 GROUP BY zip ORDER BY zip LIMIT 100;

-- tickets of customers of some demographics on Mondays
SELECT c_sk, name, ticket, amt, profit FROM (SELECT ticket, cust_sk, sum(discount) amt, sum(profit) profit FROM sales, dates, stores WHERE date_sk = d_sk AND store_sk = s_sk AND demo_sk % 10 = 6 AND dow = 1 AND yr IN (2019, 2020, 2021) AND employees BETWEEN 200 AND 260 GROUP BY ticket, cust_sk) t, customers WHERE cust_sk = c_sk ORDER BY name, ticket LIMIT 100;

-- the same items sold and returned, by quarter
SELECT i_id, count(s.qty), avg(s.qty), stddev_samp(s.qty), count(r.qty), avg(r.qty) FROM sales s, returns r, items, dates d1, dates d2 WHERE d1.yr = 2021 AND d1.mon < 4 AND d1.d_sk = s.date_sk AND i_sk = s.item_sk AND s.cust_sk = r.cust_sk AND s.item_sk = r.item_sk AND s.ticket = r.ticket AND r.date_sk = d2.d_sk AND d2.yr = 2021 GROUP BY i_id ORDER BY i_id LIMIT 100;

-- running share of each item in its category
SELECT i_id, category, sum(s.price) rev, sum(s.price) * 100 / sum(sum(s.price)) OVER (PARTITION BY category) FROM sales s, items, dates WHERE item_sk = i_sk AND category IN ('category 1', 'category 3', 'category 7') AND date_sk = d_sk AND d BETWEEN date '2021-02-22' AND date '2021-03-24' GROUP BY i_id, category ORDER BY category, i_id LIMIT 100;

-- customers that bought but did not return
SELECT count(*) FROM (SELECT DISTINCT cust_sk, d FROM sales, dates WHERE date_sk = d_sk AND yr = 2022 EXCEPT SELECT DISTINCT cust_sk, d FROM returns, dates WHERE date_sk = d_sk AND yr = 2022) x;

-- best ten items of each store
SELECT * FROM (SELECT s_name, i_id, rank() OVER (PARTITION BY s_sk ORDER BY sum(profit) DESC) r FROM sales, items, stores WHERE item_sk = i_sk AND store_sk = s_sk GROUP BY s_sk, s_name, i_id) x WHERE r <= 10 ORDER BY s_name, r, i_id;

-- customers' first and last purchase
SELECT count(*), sum(n) FROM (SELECT cust_sk, min(d) a, max(d) b, count(*) n FROM sales JOIN dates ON date_sk = d_sk GROUP BY cust_sk HAVING count(*) > 3) x;

-- every sale with the previous one of its customer
SELECT avg(gap) FROM (SELECT date_sk - lag(date_sk) OVER (PARTITION BY cust_sk ORDER BY date_sk, ticket, item_sk) gap FROM sales) x;
