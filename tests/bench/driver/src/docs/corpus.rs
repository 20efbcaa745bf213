//! The pages of W11: 10,000 in Japanese and English, generated from one fixed rule.
//!
//! ```text
//!   target/bench/docs/handbook/d00/p00.md … d99/p99.md     front matter, a title, sections with paragraphs and a block of code
//! ```
//!
//! Law: a word of rank r occurs as often as 1/r, as in written language: the first occur in most pages, the last in one of them.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// How many pages there are.
pub(crate) const PAGES: u32 = 10_000;
/// How many words each language has.
const WORDS: usize = 20_000;
/// What the corpus is like; another one is made anew.
const MADE: &str = "1: 10,000 pages, 20,000 words of each language\n";

const ENGLISH: &str = "the to of and a in is for that with you this on be as are can if it or server not by from when \
file use each which all an one will has request data only default value set new page before after configuration time \
more than client message example error name number list type option next other first user index search text change \
system state return table key cache query read write process start stop memory thread cluster backup restore replica \
network token session limit retry timeout log metric trace alert policy role permission schema migration deployment \
container volume snapshot storage queue worker event stream batch schedule release version upgrade rollback monitor \
latency throughput capacity certificate encryption signature credential audit region zone gateway proxy balancer";

const JAPANESE: &str = "設定 検索 文書 処理 情報 利用 サーバー 機能 確認 実行 場合 データ 方法 変更 管理 指定 ファイル 必要 作成 \
システム 表示 追加 開始 結果 対象 状態 更新 接続 保存 削除 環境 名前 値 内容 項目 手順 障害 復旧 画面 操作 認証 権限 利用者 通知 監視 \
ログ メモリ 性能 負荷 分散 冗長 構成 配置 自動化 最適化 暗号化 可視化 全文検索 索引 文字列 数値 関数 引数 型 例外 警告 停止 再起動 \
バックアップ ネットワーク クラスター ユーザー インターフェース アプリケーション コンテナ キュー スレッド トークン セッション \
証明書 署名 鍵 監査 地域 経路 中継 契約 請求 予算 計画 試験 品質 保守 移行 展開 版 履歴 差分 統合 分割 圧縮 転送 同期 非同期 遅延";

const KANJI: &str = "一丁七万三上下不世両並中丸主久乗九事二五井亜交京人仁今介仏仕他付代令以仮件任企伏休会伝伸似位低住体何余作使例供依価便係保信修個倍候借値停健側備催債働像優元兄先光入全公六共兵具典内円再写冬冷処出刀分切刊列初判別利制券刻則前割力加助努労効勇勉動務勝募勢区医十千協単南危厚原厳去参友反収取受口古句可台史右号司各合同名向君否告周味呼命和品員商問善喜営器四回因団困図固国園土圧在地坂均型城域執基堂報場塩境墓増墨壁壊声売変夏夕外多夜夢大天太夫央失奇奥女好妙姉始委姿娘婦子字存孝季学宅宇守安完官定宝実客室害家容宿密富察対専射将尊導小少尾局居届屋展属山岸島川州工左差己布帯常平年幸幹広床底店度座庫庭康延建弁式引弟弱張強当形影役往征後従得復徳";

/// A source of numbers, the same in every run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll()).unwrap_or_default() % end.max(1)
    }
}

/// The words of both languages by rank, and how often each occurs.
pub(crate) struct Words {
    pub(crate) english: Vec<String>,
    pub(crate) japanese: Vec<String>,
    /// The sum of all shares up to a rank.
    shares: Vec<u64>,
}

impl Words {
    pub(crate) fn new() -> Self {
        let kanji: Vec<char> = KANJI.chars().collect();
        let mut english: Vec<String> = ENGLISH.split_whitespace().map(String::from).collect();
        let mut japanese: Vec<String> = JAPANESE.split_whitespace().map(String::from).collect();
        let mut dice = Dice::new(1);
        let mut pick = |from: &[char]| from.get(dice.below(from.len())).copied().unwrap_or_default();
        while japanese.len() < WORDS {
            japanese.push([pick(&kanji), pick(&kanji)].iter().collect());
        }
        let (consonants, vowels): (Vec<char>, Vec<char>) =
            ("bcdfglmnprstv".chars().collect(), "aeiou".chars().collect());
        while english.len() < WORDS {
            english.push((0..3).flat_map(|_| [pick(&consonants), pick(&vowels)]).collect());
        }
        let mut sum = 0;
        let shares = (1..=WORDS as u64)
            .map(|rank| {
                sum += 1_000_000 / (rank + 2);
                sum
            })
            .collect();
        Self { english, japanese, shares }
    }

    fn rank(&self, dice: &mut Dice) -> usize {
        let all = usize::try_from(self.shares.last().copied().unwrap_or(1)).unwrap_or(usize::MAX);
        let at = dice.below(all) as u64;
        self.shares.partition_point(|sum| *sum <= at)
    }

    fn english(&self, dice: &mut Dice) -> &str {
        self.english.get(self.rank(dice)).map_or("", |word| word)
    }

    fn japanese(&self, dice: &mut Dice) -> &str {
        self.japanese.get(self.rank(dice)).map_or("", |word| word)
    }
}

/// Makes the pages in a directory, unless they are there as they are made now.
pub(crate) fn make(folder: &Path) -> Result<(), Box<dyn Error>> {
    let ready = folder.with_extension("ready");
    if fs::read_to_string(&ready).is_ok_and(|found| found == MADE) {
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let words = Words::new();
    for number in 0..PAGES {
        let path = folder.join(path(number));
        fs::create_dir_all(path.parent().ok_or("no directory")?)?;
        fs::write(path, page(&words, number)?)?;
    }
    Ok(fs::write(ready, MADE)?)
}

/// Where a page is in its directory.
pub(crate) fn path(number: u32) -> String {
    format!("d{:02}/p{:02}.md", number / 100, number % 100)
}

/// The text of a page: every other one is Japanese, and three of ten have a section in the other language.
pub(crate) fn page(words: &Words, number: u32) -> Result<String, std::fmt::Error> {
    let mut dice = Dice::new(u64::from(number) + 2);
    let is_japanese = number.is_multiple_of(2);
    let mut text = String::new();
    let lang = if is_japanese { "ja" } else { "en" };
    let priority = dice.below(101);
    let title = heading(words, &mut dice, is_japanese);
    write!(
        text,
        "---\ntitle: {title}\nlang: {lang}\npriority: {:.2}\n---\n# {title}\n\n",
        priority as f64 / 100.0
    )?;
    for at in 0..2 + dice.below(6) {
        let is_japanese = is_japanese != (at == 1 && number % 10 < 3);
        if at > 0 {
            write!(text, "## {}\n\n", heading(words, &mut dice, is_japanese))?;
        }
        for _ in 0..1 + dice.below(3) {
            paragraph(&mut text, words, &mut dice, is_japanese)?;
        }
        if dice.below(3) == 0 {
            let mut word = || words.english(&mut dice);
            write!(
                text,
                "```yaml\n{}_{}: {}\n{}: [{}, {}]\n```\n\n",
                word(),
                word(),
                word(),
                word(),
                word(),
                word()
            )?;
        }
    }
    Ok(text)
}

fn heading(words: &Words, dice: &mut Dice, is_japanese: bool) -> String {
    if is_japanese {
        format!("{}の{}", words.japanese(dice), words.japanese(dice))
    } else {
        format!("{} {} {}", words.english(dice), words.english(dice), words.english(dice))
    }
}

fn paragraph(text: &mut String, words: &Words, dice: &mut Dice, is_japanese: bool) -> std::fmt::Result {
    for _ in 0..2 + dice.below(5) {
        if is_japanese {
            japanese(text, words, dice)?;
        } else {
            let count = 8 + dice.below(16);
            for at in 0..count {
                let word = words.english(dice);
                text.push_str(if at == 0 { "" } else { " " });
                match dice.below(40) {
                    0 => write!(text, "`{word}_{}`", words.english(dice))?,
                    1 => write!(text, "[{word}](../d00/p00.md)")?,
                    _ => text.push_str(word),
                }
            }
            text.push_str(". ");
        }
    }
    text.push_str("\n\n");
    Ok(())
}

/// A sentence.
fn japanese(text: &mut String, words: &Words, dice: &mut Dice) -> std::fmt::Result {
    let form = dice.below(8);
    let mut word = || words.japanese(dice).to_owned();
    let one = word();
    let two = word();
    let three = word();
    match form {
        0 => write!(text, "{one}の{two}を{three}します。"),
        1 => write!(text, "この{one}は、{two}で{three}できます。"),
        2 => write!(text, "{one}が{two}の場合は、{three}を確認してください。"),
        3 => write!(text, "{one}と{two}には{three}が必要です。"),
        4 => write!(text, "`API` の{one}から{two}を{three}に変更すると、すぐに反映されます。"),
        5 => write!(text, "{one}について説明します。{two}を{three}として利用しています。"),
        6 => write!(text, "**{one}** では{two}された{three}を使います。"),
        _ => write!(text, "{one}・{two}・{three}のいずれかを指定しなければなりません。"),
    }
}
